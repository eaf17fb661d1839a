/* The words of core/models/types.txt that have a function here; rows.awk reads them in this file too.
 *
 * KIND(ID, name, function, text): the kinds of positions, and what MODELS.md calls them. */
KIND(ROPE, rope, pe_hf_rope, "`rope`")
KIND(LEARNED, learned, pe_hf_learned_or_other, "`learned`")    /* max_position_embeddings + extra_rows rows */
KIND(PATCHES, patches, pe_hf_patches, "`learned`, of patches") /* extra_rows + (image_size / patch_size)^2 rows */
KIND(SINUSOIDAL, sinusoidal, pe_hf_sinusoidal, "`sinusoidal`")
KIND(DETR, detr, pe_hf_detr, "`sinusoidal`")
KIND(RT_DETR, rt_detr, pe_hf_rt_detr, "`sinusoidal`") /* its width and base have names of their own */
KIND(ALIBI, alibi, pe_hf_alibi, "`alibi`")
KIND(MPT, mpt, pe_hf_mpt, "`alibi`") /* with the numbers of attn_config */
KIND(FALCON, falcon, pe_hf_falcon, "`rope`, or `alibi` if alibi is true")
KIND(T5, t5, pe_hf_t5, "`t5`")                /* buckets of distances in two stacks */
KIND(BUCKETS, buckets, pe_hf_buckets, "`t5`") /* in an encoder */
KIND(LAYOUTLM, layoutlm, pe_hf_layoutlm, "`t5`, three tables")
KIND(NEZHA, nezha, pe_hf_nezha, "`shaw`")
KIND(DEBERTA, deberta, pe_hf_deberta, "`deberta`") /* no buckets; positions have projections of their own */
KIND(DEBERTA_V2, deberta_v2, pe_hf_deberta_v2, "`deberta`")
KIND(TRANSFO_XL, transfo_xl, pe_hf_transfo_xl, "`transformer_xl`")
KIND(XLNET, xlnet, pe_hf_xlnet, "`xlnet`")
KIND(CONFORMER, conformer, pe_hf_conformer, "`conformer`, or `shaw` if relative_key")
KIND(SWIN, swin, pe_hf_swin, "`swin`")
KIND(SWINV2, swinv2, pe_hf_swinv2, "`swinv2`")
KIND(BEIT, beit, pe_hf_beit, "`beit`")
KIND(DECOMPOSED, decomposed, pe_hf_decomposed, "`decomposed`, of an image's patches")
KIND(DECOMPOSED_WINDOW, decomposed_window, pe_hf_decomposed_window, "`decomposed`, of a window")
KIND(DECOMPOSED_TABLE, decomposed_table, pe_hf_decomposed_table, "`learned`, of patches, beside `decomposed`")
KIND(GRID, grid, pe_hf_grid, "`rope`, of a grid")
KIND(SINES, sines, pe_hf_sines, "`sinusoidal`, of a grid")
KIND(COGVIDEOX, cogvideox, pe_hf_cogvideox, "`sinusoidal`, or `rope` if use_rotary_positional_embeddings")
KIND(NONE, none, pe_hf_nothing, "`none`") /* the code has no positions */
KIND(PARTS, parts, NULL, "parts")         /* its `layers` are parts: the part x of type t has a row of its own, t/x */
KIND(NESTED, nested, NULL, "that of ")    /* only holds other models */
KIND(OTHER, other, NULL, "refused: ")     /* positions that no scheme here gives */

/* TRAIT(member, name, text, source): what some types' code does in its own way. The member of struct pe_hf_model is
 * where the usual way is replaced; the text is what MODELS.md has after the positions; the source is the file below
 * transformers' models/ (or the vendor's) that the function follows. */
TRAIT(missing, must_hold, "; refused without it", "musicgen/configuration_musicgen.py: MusicgenConfig")
TRAIT(missing, may_be_flat, "; or its fields beside it", "qwen2_vl/configuration_qwen2_vl.py: Qwen2VLConfig")
TRAIT(sliding, sliding_scaled, "; sliding layers scaled too",
      "modernbert/configuration_modernbert.py: ModernBertConfig.convert_rope_params_to_dict")
TRAIT(sliding, sliding_unscaled, "; sliding layers not scaled", "olmo3/modeling_olmo3.py: Olmo3Model")
TRAIT(heads, twice_as_wide, "; heads of twice the width", "zamba2/modular_zamba2.py")
TRAIT(before, rotary_last, "; the last channels rotated", "deepseek_v4/modular_deepseek_v4.py: apply_rotary_pos_emb")
TRAIT(second, first_of_period, "the first of each period", "modernbert/configuration_modernbert.py")
TRAIT(second, counted_back, "each period's first, counted from the last layer",
      "muse_glimmer/modular_muse_glimmer.py: MuseGlimmerTextConfig")
TRAIT(second, and_first_layer, "the last of each period and the first layer",
      "mimo_v2_flash/modular_mimo_v2_flash.py: MiMoV2FlashConfig")
TRAIT(second, and_last_layer, "the last of each period and the last layer",
      "gemma4/configuration_gemma4.py: Gemma4TextConfig")
TRAIT(by_ratio, by_compress_ratio, "; by compress_ratios",
      "deepseek_v4/configuration_deepseek_v4.py: DeepseekV4Config.__post_init__")
TRAIT(scaling, yarn_is_longrope, "; yarn is longrope",
      "phi3/configuration_phi3.py: Phi3Config.convert_rope_params_to_dict")
TRAIT(scaling, yarn_is_another, "; refused with yarn", "the vendor's modeling_phi3_v.py: Phi3YarnScaledRotaryEmbedding")
TRAIT(scaling, alpha_is_ntk, "; dynamic with alpha is ntk",
      "hunyuan_v1_dense/modular_hunyuan_v1_dense.py: HunYuanDenseV1RotaryEmbedding")
TRAIT(scaling, only_longrope, "; longrope, refused without its lists", "diffusers: transformer_omnigen.py")
TRAIT(scaled, yarn_unscaled, "; attention_factor of yarn 1",
      "deepseek_v4/configuration_deepseek_v4.py: DeepseekV4Config.__post_init__")
TRAIT(then, resized_to_axes, "; resized_floor to rope_axes_dim", "diffusers: transformer_cogview4.py")
TRAIT(then, scaled_by_axis, "; rope_scale of each axis", "diffusers: transformer_cosmos.py: CosmosRotaryPosEmbed")
TRAIT(then, cropped_to_video, "; cropped into 60 × 90 pixels of latents", "diffusers: transformer_easyanimate.py")
TRAIT(then, resized_from_sample, "; resized from the sample", "diffusers: models/embeddings.py: PatchEmbed")
TRAIT(then, resized_by_scale, "; resized from the sample, divided by interpolation_scale",
      "diffusers: pixart_transformer_2d.py")
TRAIT(then, windowed, "; the middle of pos_embed_max_size", "diffusers: models/embeddings.py: cropped_pos_embed")
TRAIT(then, same_temperature, "; refused if its two temperatures differ",
      "dab_detr/modeling_dab_detr.py: DabDetrSinePositionEmbedding")
TRAIT(then, table_scaled, "; tables scaled", "layoutlmv3/modeling_layoutlmv3.py")
TRAIT(then, ntk_beyond, "; dynamic NTK by rotary_scaling_factor beyond max_trained_positions",
      "the vendor's modeling_hf_nomic_bert.py: NomicBertDynamicNTKRotaryEmbedding")
TRAIT(scores, table_by_layer, "; a table in every layer", "umt5/modeling_umt5.py: UMT5Attention")
TRAIT(scores, gpt2_flags, ", unscaled or by layer if flags are set", "gpt2/modeling_gpt2.py: GPT2Attention.__init__")
TRAIT(scores, temperature, ", queries of layers without positions by `floor_scale`, `attn_scale`",
      "llama4/modeling_llama4.py: Llama4TextAttention.forward")
TRAIT(scores, llama_4_beta, ", queries by `llama_4_scaling_beta`",
      "ministral3/modeling_ministral3.py: get_llama_4_attn_scale")
TRAIT(scores, magnitude_differs, ", not m^2 as by the vendor",
      "deepseek_v2/modular_deepseek_v2.py: DeepseekV2Attention")
