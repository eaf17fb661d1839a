/* The laws of plans (tests/support/plans.h) for the styles, forms of sequence and ways to combine with x that a
 * scheme's one example does not cover. A style is a line. */
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"

static void hold(const char *const *requests)
{
    for (; *requests; requests++)
        test_assert_laws(*requests);
}

#define HOLD(...) hold((const char *const[]){__VA_ARGS__, NULL})

#define ROPE "{'scheme':'rope','head_dim':24,"

TEST(rope_on_several_axes)
{
    HOLD(ROPE "'grid':[3,5]}", ROPE "'grid':[2,3,5],'axis_order':[2,0,1],'layout':'half_per_axis','form':'expanded'}",
         ROPE "'grid':[4,6],'order':'merge','axes_dim':[8,16],'coords':'one_based','form':'concat'}",
         ROPE "'grid':[3,7],'channels':'dinov3','form':'complex'}",
         ROPE "'grid':[3,7],'channels':'dinov3','arith':'float32'}",
         ROPE "'grid':[3,7],'channels':'pixtral','coords':'centered'}",
         ROPE "'grid':[3,7],'coords':'resized','ref_grid':[16,16]}",
         ROPE "'grid':[3,7],'coords':'pixel','form':'matrix'}",
         ROPE "'grid':[300,2],'layout':'vjepa2','form':'expanded'}",
         ROPE "'positions':[[0,1,2.5],[3,3,3],[-4,70,1000]],'channels':'mrope_interleaved','mrope_section':[4,4,4]}",
         ROPE "'positions':[[0,1,2],[3,4,5],[9,9,9]],'channels':'videorope','mrope_section':[4,4,4]}");
}

TEST(rope_in_every_scaling)
{
    HOLD(ROPE "'len':70,'scaling':{'type':'linear','factor':3}}",
         ROPE "'len':70,'scaling':{'rope_type':'ntk','factor':3},'layout':'half','form':'expanded'}",
         ROPE "'len':70,'scaling':{'type':'dynamic','factor':3,'max_position_embeddings':32}}",
         ROPE "'len':70,'scaling':{'type':'yarn','factor':3,'original_max_position_embeddings':32,'mscale':0.7,"
              "'mscale_all_dim':0.5}}",
         ROPE "'len':70,'scaling':{'type':'llama3','factor':8,'low_freq_factor':1,'high_freq_factor':4,"
              "'original_max_position_embeddings':64}}",
         ROPE "'len':70,'scaling':{'type':'proportional','partial_rotary_factor':0.5}}",
         ROPE "'len':70,'rotary_dim':4,'scaling':{'type':'su','short_factor':[1,2],'long_factor':[3,4.5],'factor':2,"
              "'original_max_position_embeddings':64}}",
         ROPE "'len':9,'arith':'ggml'}",
         ROPE "'positions':[[5,2],[1,9],[70000,3]],'arith':'ggml','channels':'imrope','form':'expanded'}",
         ROPE "'len':9,'arith':'float32','scaling':{'type':'yarn','factor':3,'original_max_position_embeddings':32}}",
         ROPE "'len':9,'rope_theta':500,'partial_rotary_factor':0.5,'rotary_offset':12,'direction':-1}");
}

#define SEGMENTS                                                                                                       \
    "'segments':[{'type':'text','len':40},{'type':'video','grid':[2,4,6],'second_per_grid':0.7},"                      \
    "{'type':'text','len':3}]"

TEST(sequences)
{
    HOLD(ROPE SEGMENTS "}",
         ROPE SEGMENTS ",'position_style':'videorope','channels':'videorope','mrope_section':[4,4,4]}",
         ROPE SEGMENTS ",'position_style':'qwen3_omni'}",
         ROPE "'position_style':'qwen2_5_omni','segments':[{'type':'audio_in_video','grid':[3,4,4],'second_per_grid':3,"
              "'audio_len':70}]}",
         ROPE "'lens':[3,40,1],'offset':-2}", ROPE "'tokens':['the','dog','chased','another','dog']}",
         "{'scheme':'xpos','head_dim':8,'len':40,'center':'torchscale'}",
         "{'scheme':'xpos','head_dim':8,'positions':[0.5,-3,1000],'center':'lucidrains','gamma':0.1}",
         "{'scheme':'sinusoidal','dim':6,'lens':[2,50]}");
}

#define TABLE "'table':[[1,2,3],[4,5,6.5],[7,8,9],[0.1,11,12]]"

TEST(learned_tables)
{
    HOLD("{'scheme':'learned','len':4," TABLE "}",
         "{'scheme':'learned','len':40,'out_of_range':'interpolate'," TABLE "}",
         "{'scheme':'learned','positions':[-5,70,1],'out_of_range':'wrap','row_offset':2," TABLE "}",
         "{'scheme':'learned','grid':[5,3],'table_grid':[2,2]," TABLE "}",
         "{'scheme':'learned','grid':[1,3],'table_grid':[1,3],'num_prefix':1,'interpolate':'bicubic_antialias'," TABLE
         "}",
         "{'scheme':'learned','grid':[4,6],'order':'merge','table_grid':[2,2],'interpolate':'bilinear_aligned'," TABLE
         "}",
         "{'scheme':'learned','grid':[2,3],'row_table':[[1,2],[3,4]],'col_table':[[5,6],[7,8],[9,0]]}",
         "{'scheme':'learned','grid':[7,9],'dim':6,'seed':5}");
}

#define X "'x':[[1,2,3,4],[5,6,7,8],[9,10,11,12]]"

TEST(encodings_that_meet_embeddings)
{
    HOLD("{'scheme':'sinusoidal'," X "}",
         "{'scheme':'sinusoidal','x_scale':'sqrt_dim','combine':'multiply','offset':7," X "}",
         "{'scheme':'sinusoidal','pe_scale':0.5,'combine':'multiply_residual'," X "}",
         "{'scheme':'sinusoidal','dim':6,'combine':'concat'," X "}", "{'scheme':'none'," X "}",
         "{'scheme':'sinusoidal','dim':70,'grid':[9,11],'channels_first':true}");
}

#define Q_AND_K "'q_positions':[5,0.5,-3],'k_positions':[0,2,9.25,700]"

TEST(biases)
{
    HOLD("{'scheme':'t5','q_len':9,'k_len':70,'num_buckets':13,'max_distance':33}",
         "{'scheme':'t5'," Q_AND_K ",'bidirectional':false}",
         "{'scheme':'t5'," Q_AND_K ",'seed':3,'num_heads':3,'table_scale':0.7}",
         "{'scheme':'t5','len':70,'seed':3,'causal':true,'arith':'float32'}",
         "{'scheme':'kerple','q_len':3,'k_len':70,'r1':0.3,'kind':'power','r2':0.5}",
         "{'scheme':'kerple'," Q_AND_K ",'num_heads':2,'r1':[3,0.1],'r2':[1e-6,100]}",
         "{'scheme':'kerple','len':7,'arith':'float32','window':3}",
         "{'scheme':'fire','q_len':5,'k_len':70,'seed':1,'hidden':5,'init_l':2,'window_right':2}",
         "{'scheme':'fire'," Q_AND_K ",'seed':1,'num_heads':3,'c':1.5}",
         "{'scheme':'sandwich','q_len':3,'k_len':70,'bar_dim':6,'num_heads':3}",
         "{'scheme':'sandwich'," Q_AND_K ",'bar_dim':140,'base':50,'num_heads':2,'key_mask':[1,0,1,1]}");
}

TEST(models)
{
    HOLD("{'preset':'llama-3.1','len':3}", "{'preset':'phi-3-mini-128k','positions':[0,5000]}",
         "{'preset':'gemma-3-4b','layer_type':'sliding_attention','len':3}",
         "{'preset':'deepseek-v3','len':3,'base':500}", "{'preset':'detr-sine','grid':[3,4]}",
         "{'preset':'qwen2.5-vl'," SEGMENTS "}",
         "{'hf_config':{'model_type':'llama','head_dim':16,'rope_theta':500.0},'len':3}");
}

TEST(windows)
{
    HOLD("{'scheme':'swin','grid':[3,5]}", "{'scheme':'swin','grid':[2,1],'table':[[1,2],[3,-0.1],[5,6]]}",
         "{'scheme':'swin','grid':[4,3],'num_heads':2,'seed':1,'window':3,'causal':true}",
         "{'scheme':'swin','len':90,'num_heads':2,'seed':1}", "{'scheme':'beit','grid':[3,5]}",
         "{'scheme':'beit','grid':[5,1],'num_heads':3,'seed':1,'key_mask':[1,0,1,1,0,1]}",
         "{'scheme':'beit','len':3,'num_heads':1,'seed':7,'causal':true}", "{'scheme':'swinv2','grid':[3,5]}",
         "{'scheme':'swinv2','grid':[3,5],'num_heads':5,'hidden':17,'seed':1,'std':3.0,'pretrained_grid':[6,0]}",
         "{'scheme':'swinv2','grid':[2,3],'arith':'float32','w1':[[1,2],[3,4.5]],'b1':[0.1,-1],'w2':[[1,0.25]],"
         "'window_right':1}");
}

#define FOURIER "{'scheme':'fourier',"

TEST(fourier_features)
{
    HOLD(FOURIER "'num_freqs':4,'grid':[3,4]}",
         FOURIER "'num_freqs':5,'log_sampling':false,'multiply_pi':true,'positions':[[0.3,1,2],[3,-1,1]]}",
         FOURIER "'style':'perceiver','num_bands':150,'grid':[5,4]}",
         FOURIER "'style':'perceiver','num_bands':3,'channels_first':true,'order':'merge','grid':[4,4]}",
         FOURIER "'style':'perceiver','num_bands':3,'arith':'float32','len':9}",
         FOURIER "'style':'perceiver','num_bands':3,'positions':[0.5,-1,0.1]}",
         FOURIER "'style':'gaussian','num_freqs':150,'seed':7,'sigma':2.5,'positions':[[0.3,1,2],[3,-1,1]]}",
         FOURIER "'style':'gaussian','b':[[0.1],[2]],'len':5}",
         FOURIER "'style':'gaussian','arith':'float32','num_freqs':3,'grid':[3,4,5]}");
}

#define AXES "{'scheme':'sinusoidal','dim':8,"

TEST(sinusoids_on_several_axes)
{
    HOLD(AXES "'grid':[2,3]}", AXES "'grid':[40]}", AXES "'style':'axial','len':5}",
         AXES "'axes_dim':[3,5],'axis_order':[1,0],'odd':'truncate','flip_sin_to_cos':true,'angle_scale':-2.5,"
              "'grid':[2,3]}",
         AXES "'style':'detr','normalize':true,'grid':[17,40]}",
         AXES "'style':'detr','normalize':true,'arith':'float32','order':'merge','grid':[4,6]}",
         AXES "'style':'detr','positions':[[0.5,2],[3,-4]]}", AXES "'style':'mae','grid':[2,3]}",
         AXES "'style':'timm','temperature':50,'interleave_sin_cos':true,'grid':[2,3]}",
         AXES "'style':'timm','grid':[2,3]}", AXES "'style':'multidim','grid':[2,3,4]}",
         AXES "'style':'vjepa','uniform_power':true,'grid':[2,3,4]}");
}

#define WIDE "{'scheme':'recursive','dim':64,'hidden':1,'seed':3,'std':0.4,"

/* So many rows of recursive that not all are stored: in any order and in pieces they are the same as from the start. */
TEST(rows_that_follow_from_others)
{
    HOLD("{'scheme':'floater','activation':'identity','time_input':false,'p0':[1],'w1':[[2]],'b1':[0],'w2':[[-1]],"
         "'b2':[0],'len':100}",
         "{'scheme':'floater','dim':7,'hidden':3,'seed':1,'positions':[50,2,49,0],'method':'midpoint'}",
         WIDE "'positions':[70000,3,69999,40001,40002,0]}",
         "{'scheme':'recursive','p0':[1,-0.5],'w1':[[0.5,-0.25],[0.75,1]],'b1':[0.125,0],'w2':[[1,0.5],[-0.25,0.5]],"
         "'b2':[0,-0.5],'len':300}");
}

TEST(maps_of_rows_of_a_table)
{
    HOLD("{'scheme':'deberta','q_len':5,'k_len':300,'position_buckets':16,'max_relative_positions':40}",
         "{'scheme':'deberta','q_positions':[3,1,70],'k_positions':[5,0,-8],'clamp_first':true,"
         "'max_relative_positions':20,'pos_att_type':['p2c'],'norm_rel_ebd':true}",
         "{'scheme':'shaw','q_len':3,'k_len':40,'max_relative':9}",
         "{'scheme':'shaw','len':5,'table_style':'relative_key'}",
         "{'scheme':'shaw','q_positions':[3,1,70],'k_positions':[5,0,-8],'p_min':-3,'direction':'query_minus_key'}",
         "{'scheme':'conformer','d_model':4,'positions':[0,9,4]}",
         "{'scheme':'xlnet','d_model':4,'len':3,'clamp_len':1,'mem_len':3}",
         "{'scheme':'transformer_xl','d_model':4,'q_len':2,'k_len':7}");
}

/* Maps of more than one tile, and masks. */
TEST(large_maps)
{
    HOLD("{'scheme':'alibi','num_heads':2,'q_len':300,'k_len':280,'window':100}",
         "{'scheme':'alibi','num_heads':2,'q_len':3,'k_len':9000,'slopes':[0.3,0.1],'window':5000}",
         "{'scheme':'alibi','num_heads':1,'len':9,'offset':5,'form':'key_mask','key_mask':[1,0,1,1,0,0,0,1,1]}",
         "{'scheme':'t5','num_heads':2,'q_len':300,'k_len':280,'seed':3}",
         "{'scheme':'t5','table':[[1,-1],[2,-0.0],[3,0.5],[4,7]],'len':70,'window':9}");
}

#define ATTEND "'q':[[1,2],[3,4],[5,6]],'k':[[1,0],[3,1],[5,2]]}"

TEST(attention_of_embeddings)
{
    static const char *const requests[] = {
        "{'scheme':'none','tokens':['a','b','a'],'dim':8,'num_heads':2}",
        "{'scheme':'learned','x':[[1,2,3,4],[5,6,7,8]],'num_heads':2,'seed':3}",
        "{'scheme':'rope','x':[[1,2,3,4],[5,6,7,8]],'num_heads':2,'seed':3}",
        "{'scheme':'t5','tokens':['a','b','a'],'dim':8,'num_heads':2}",
        "{'scheme':'beit','grid':[1,2],'seed':1,'q':[[1,2],[3,4],[5,6]],'k':[[1,0],[3,1],[5,2]]}",
    };
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        test_assert_laws_of_attention(requests[i], NULL);
}

TEST(terms_of_scores)
{
    static const char *const requests[] = {
        "{'scheme':'sinusoidal','tokens':['a','b','a'],'dim':8,'num_heads':2,'causal':true}",
        "{'scheme':'learned','x':[[[1,2,3,4],[5,6,7,8]],[[1,0,3,0],[0,6,0,8]]],'num_heads':2,'seed':3}",
        "{'scheme':'shaw','table_style':'relative_key_query','max_relative':3,'seed':1,'std':1.0," ATTEND,
        "{'scheme':'xlnet','seed':1,'std':0.5,'token_type_ids':[0,1,1]," ATTEND,
        "{'scheme':'deberta','position_buckets':4,'max_relative_positions':8,'seed':1,'std':1.0," ATTEND,
        "{'scheme':'cope','npos_max':3,'seed':1,'std':1.0,'causal':true," ATTEND,
    };
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        test_assert_laws_of_attention(requests[i], "terms");
}
