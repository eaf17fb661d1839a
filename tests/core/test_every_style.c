/* The laws of test_every_scheme.c for the styles, forms of sequence and ways to combine with x that a scheme's one
 * example does not cover. */
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"

static void hold(const char *const *requests)
{
    for (; *requests; requests++)
        test_assert_laws(*requests);
}

#define ROPE "{'scheme':'rope','head_dim':24,"

TEST(rope_on_several_axes)
{
    static const char *const requests[] = {
        ROPE "'grid':[3,5]}",
        ROPE "'grid':[2,3,5],'axis_order':[2,0,1],'layout':'half_per_axis','form':'expanded'}",
        ROPE "'grid':[4,6],'order':'merge','axes_dim':[8,16],'coords':'one_based','form':'concat'}",
        ROPE "'grid':[3,7],'channels':'dinov3','form':'complex'}",
        ROPE "'grid':[3,7],'channels':'dinov3','arith':'float32'}",
        ROPE "'grid':[3,7],'channels':'pixtral','coords':'centered'}",
        ROPE "'grid':[3,7],'coords':'resized','ref_grid':[16,16]}",
        ROPE "'grid':[3,7],'coords':'pixel','form':'matrix'}",
        ROPE "'grid':[300,2],'layout':'vjepa2','form':'expanded'}",
        ROPE "'positions':[[0,1,2.5],[3,3,3],[-4,70,1000]],'channels':'mrope_interleaved','mrope_section':[4,4,4]}",
        ROPE "'positions':[[0,1,2],[3,4,5],[9,9,9]],'channels':'videorope','mrope_section':[4,4,4]}",
        NULL,
    };
    hold(requests);
}

TEST(rope_in_every_scaling)
{
    static const char *const requests[] = {
        ROPE "'len':70,'scaling':{'type':'linear','factor':3}}",
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
        ROPE "'len':9,'rope_theta':500,'partial_rotary_factor':0.5,'rotary_offset':12,'direction':-1}",
        NULL,
    };
    hold(requests);
}

#define SEGMENTS                                                                                                       \
    "'segments':[{'type':'text','len':40},{'type':'video','grid':[2,4,6],'second_per_grid':0.7},"                      \
    "{'type':'text','len':3}]"

TEST(sequences)
{
    static const char *const requests[] = {
        ROPE SEGMENTS "}",
        ROPE SEGMENTS ",'position_style':'videorope','channels':'videorope','mrope_section':[4,4,4]}",
        ROPE SEGMENTS ",'position_style':'qwen3_omni'}",
        ROPE "'position_style':'qwen2_5_omni','segments':[{'type':'audio_in_video','grid':[3,4,4],'second_per_grid':3,"
             "'audio_len':70}]}",
        ROPE "'lens':[3,40,1],'offset':-2}",
        ROPE "'tokens':['the','dog','chased','another','dog']}",
        "{'scheme':'xpos','head_dim':8,'len':40,'center':'torchscale'}",
        "{'scheme':'xpos','head_dim':8,'positions':[0.5,-3,1000],'center':'lucidrains','gamma':0.1}",
        "{'scheme':'sinusoidal','dim':6,'lens':[2,50]}",
        NULL,
    };
    hold(requests);
}

#define TABLE "'table':[[1,2,3],[4,5,6.5],[7,8,9],[0.1,11,12]]"

TEST(learned_tables)
{
    static const char *const requests[] = {
        "{'scheme':'learned','len':4," TABLE "}",
        "{'scheme':'learned','len':40,'out_of_range':'interpolate'," TABLE "}",
        "{'scheme':'learned','positions':[-5,70,1],'out_of_range':'wrap','row_offset':2," TABLE "}",
        "{'scheme':'learned','grid':[5,3],'table_grid':[2,2]," TABLE "}",
        "{'scheme':'learned','grid':[1,3],'table_grid':[1,3],'num_prefix':1,'interpolate':'bicubic_antialias'," TABLE
        "}",
        "{'scheme':'learned','grid':[4,6],'order':'merge','table_grid':[2,2],'interpolate':'bilinear_aligned'," TABLE
        "}",
        "{'scheme':'learned','grid':[2,3],'row_table':[[1,2],[3,4]],'col_table':[[5,6],[7,8],[9,0]]}",
        "{'scheme':'learned','grid':[7,9],'dim':6,'seed':5}",
        NULL,
    };
    hold(requests);
}

#define X "'x':[[1,2,3,4],[5,6,7,8],[9,10,11,12]]"

TEST(encodings_that_meet_embeddings)
{
    static const char *const requests[] = {
        "{'scheme':'sinusoidal'," X "}",
        "{'scheme':'sinusoidal','x_scale':'sqrt_dim','combine':'multiply','offset':7," X "}",
        "{'scheme':'sinusoidal','pe_scale':0.5,'combine':'multiply_residual'," X "}",
        "{'scheme':'sinusoidal','dim':6,'combine':'concat'," X "}",
        "{'scheme':'none'," X "}",
        "{'scheme':'sinusoidal','dim':70,'grid':[9,11],'channels_first':true}",
        NULL,
    };
    hold(requests);
}

#define Q_AND_K "'q_positions':[5,0.5,-3],'k_positions':[0,2,9.25,700]"

TEST(biases)
{
    static const char *const requests[] = {
        "{'scheme':'t5','q_len':9,'k_len':70,'num_buckets':13,'max_distance':33}",
        "{'scheme':'t5'," Q_AND_K ",'bidirectional':false}",
        "{'scheme':'t5'," Q_AND_K ",'seed':3,'num_heads':3,'table_scale':0.7}",
        "{'scheme':'t5','len':70,'seed':3,'causal':true,'arith':'float32'}",
        "{'scheme':'kerple','q_len':3,'k_len':70,'r1':0.3,'kind':'power','r2':0.5}",
        "{'scheme':'kerple'," Q_AND_K ",'num_heads':2,'r1':[3,0.1],'r2':[1e-6,100]}",
        "{'scheme':'kerple','len':7,'arith':'float32','window':3}",
        "{'scheme':'fire','q_len':5,'k_len':70,'seed':1,'hidden':5,'init_l':2,'window_right':2}",
        "{'scheme':'fire'," Q_AND_K ",'seed':1,'num_heads':3,'c':1.5}",
        "{'scheme':'sandwich','q_len':3,'k_len':70,'bar_dim':6,'num_heads':3}",
        "{'scheme':'sandwich'," Q_AND_K ",'bar_dim':140,'base':50,'num_heads':2,'key_mask':[1,0,1,1]}",
        NULL,
    };
    hold(requests);
}

TEST(models)
{
    static const char *const requests[] = {
        "{'preset':'llama-3.1','len':3}",
        "{'preset':'phi-3-mini-128k','positions':[0,5000]}",
        "{'preset':'gemma-3-4b','layer_type':'sliding_attention','len':3}",
        "{'preset':'deepseek-v3','len':3,'base':500}",
        "{'preset':'detr-sine','grid':[3,4]}",
        "{'preset':'qwen2.5-vl'," SEGMENTS "}",
        "{'hf_config':{'model_type':'llama','head_dim':16,'rope_theta':500.0},'len':3}",
        NULL,
    };
    hold(requests);
}

TEST(windows)
{
    static const char *const requests[] = {
        "{'scheme':'swin','grid':[3,5]}",
        "{'scheme':'swin','grid':[2,1],'table':[[1,2],[3,-0.1],[5,6]]}",
        "{'scheme':'swin','grid':[4,3],'num_heads':2,'seed':1,'window':3,'causal':true}",
        "{'scheme':'swin','len':90,'num_heads':2,'seed':1}",
        "{'scheme':'beit','grid':[3,5]}",
        "{'scheme':'beit','grid':[5,1],'num_heads':3,'seed':1,'key_mask':[1,0,1,1,0,1]}",
        "{'scheme':'beit','len':3,'num_heads':1,'seed':7,'causal':true}",
        "{'scheme':'swinv2','grid':[3,5]}",
        "{'scheme':'swinv2','grid':[3,5],'num_heads':5,'hidden':17,'seed':1,'std':3.0,'pretrained_grid':[6,0]}",
        "{'scheme':'swinv2','grid':[2,3],'arith':'float32','w1':[[1,2],[3,4.5]],'b1':[0.1,-1],'w2':[[1,0.25]],"
        "'window_right':1}",
        NULL,
    };
    hold(requests);
}
