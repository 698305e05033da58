"""Keys of a config.json that change nothing of the cache: every other one is read or warned of."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

# By form: ids of tokens, training, norms, activations, rotary positions, mixtures, inputs beside text.
_FORMS = re.compile(
    r"(^|_)(token_ids?|token_index|dropout|dropout_prob|pdrop|eps|epsilon|bias|act|dtype|coef|softcapping)$"
    r"|^(initializer|rope|rotary|relative|yarn|mrope|moe|router|routed|num_experts|mlp|ffn|logits|quant"
    r"|quantization|vision|audio|image|video|summary|classifier|mask_time|mask_feature)_"
)
# What transformers writes into every config.json: names, training, generation.
_COMMON = {
    "_attn_implementation", "_attn_implementation_autoset", "_commit_hash", "_name_or_path", "architectures",
    "attn_implementation", "auto_map", "begin_suppress_tokens", "cache_implementation", "custom_pipelines",
    "chunk_size_feed_forward", "diversity_penalty", "do_sample", "dtype", "early_stopping",
    "encoder_no_repeat_ngram_size", "finetuning_task", "forced_decoder_ids", "fp16", "bf16", "fp32",
    "gradient_checkpointing", "id2label", "label2id", "language", "languages", "length_penalty", "license",
    "max_length", "max_new_tokens", "min_length", "model_max_length", "name", "no_repeat_ngram_size",
    "num_beam_groups", "num_beams", "num_labels", "num_return_sequences", "output_attentions",
    "output_hidden_states", "output_router_logits", "output_scores", "prefix", "pretraining_tp",
    "problem_type", "processor_class", "pruned_heads", "remove_invalid_values", "repetition_penalty",
    "return_dict", "return_dict_in_generate", "seed", "suppress_tokens", "task_specific_params",
    "temperature", "tf_legacy_loss", "tokenizer_class", "top_k", "top_p", "torchscript",
    "transformers_version", "transformers.js_config", "typical_p", "unsloth_fixed", "unsloth_version",
    "use_bfloat16", "use_cache", "use_flash_attn", "use_return_dict", "tie_encoder_decoder",
}
_LENGTHS = {
    "context_length", "max_seq_len", "max_sequence_length", "max_source_positions", "max_target_positions",
    "model_max_length", "n_ctx", "n_positions", "original_max_position_embeddings", "seq_length",
}
# How attention and its inputs are computed, or what the weights are: what a token leaves is the same.
_COMPUTED = {
    "activation", "activation_function", "activation_sparsity_pattern", "add_cross_attention", "alibi",
    "altup_active_idx", "altup_coef_clip", "altup_correct_scale", "altup_num_inputs",
    "apply_residual_connection_post_layernorm", "attention_head_dim_multiplier", "attention_in_multiplier",
    "attention_multiplier", "attention_out_multiplier", "attention_projection_layout",
    "attention_softmax_in_fp32", "attention_value_scale", "attn_output_gate", "attn_scale",
    "attn_temperature_tuning", "block_auto_adjust_ff_dim", "block_dim", "block_ff_dim",
    "block_ffn_dim_multiplier", "block_mlp_init_scale", "block_multiple_of", "block_norm_eps",
    "block_out_init_scale", "block_use_swiglu", "block_use_xavier_init", "clip_qkv",
    "decoder_sparse_step", "dim_model_base", "do_layer_norm_before", "embedding_layer_norm",
    "embedding_multiplier", "enable_bias", "enable_moe_block", "ep_size", "expert_layer_offset",
    "expert_layer_period", "feedforward_proj", "ff_activation", "ffn_dim", "final_layer_norm",
    "final_logit_softcapping", "first_k_dense_replace", "floor_scale", "full_attn_alpha_factor",
    "full_attn_beta_factor", "hidden_activation", "hidden_size_per_layer_input", "index_n_heads",
    "index_topk", "init_device", "init_method", "init_std", "interleave_moe_layer_step",
    "intermediate_size_mlp", "is_decoder", "is_gated_act", "is_moe", "key_multiplier", "laurel_rank",
    "layer_norm_elementwise_affine", "layer_norm_type", "layer_rope_theta", "layer_scale", "layerdrop",
    "learned_pos_emb", "linear_attn_alpha_factor", "linear_attn_beta_factor", "lm_head_multiplier",
    "local_rope_theta", "logit_scale", "mup_enabled", "n_group", "n_inner", "n_routed_experts",
    "n_shared_experts", "no_bias", "norm_topk_prob", "norm_type", "normalization_type",
    "num_dense_layers", "num_experts", "num_ln_in_parallel_attn", "num_local_experts",
    "num_logits_to_keep", "num_shared_experts", "o_groups", "o_lora_rank", "parallel_attn",
    "partial_rotary_factor", "per_layer_embedding_scale", "position_embedding_type", "prefix_lm",
    "qk_layernorm", "qk_norm", "query_pre_attn_scalar", "reorder_and_upcast_attn",
    "residual_in_fp32", "residual_multiplier", "rmsnorm", "rope_local_base_freq", "route_scale",
    "scale_attention_softmax_in_fp32", "scale_attn_by_inverse_layer_idx", "scale_attn_weights",
    "scale_depth", "scale_emb", "scale_embedding", "scoring_func", "shared_intermediate_size",
    "shared_expert_intermediate_size", "swa_rope_theta", "swiglu_alpha", "swiglu_limit",
    "tie_word_embeddings", "top_k_experts", "topk_group", "topk_method", "type_vocab_size",
    "unpadded_vocab_size", "use_double_wide_mlp", "use_expert_bias", "use_mrope", "use_parallel_residual",
    "use_post_norm", "use_qk_norm", "use_qkv_bias", "use_sandwich_norm", "vocab_size_per_layer_input",
    "word_embed_proj_dim", "_remove_final_layer_norm", "decoder_vocab_size",
    "embedding_initializer_range", "enable_moe_fp32_combine", "expert_ffn_hidden_size",
    "input_jitter_noise", "intermediate_multiple_size", "lambda_std_dev", "share_encoder_decoder_embeddings",
    "shared_experts_intermediate_size", "zero_expert_num", "add_bias_linear", "add_qkv_bias",
    "apply_query_key_layer_scaling", "aux_loss_alpha", "bias_dropout_fusion", "experts_per_token",
    "fp32_residual_connection", "initial_context_length", "interleaved_qkv", "is_llama_config",
    "original_rope", "padded_vocab_size", "post_layer_norm", "seq_aux", "weight_tying",
}
# Of inputs beside text.
_INPUTS = {
    "aligner_config", "candidate_resolutions", "downsample_ratio", "dynamic_image_size", "force_image_size",
    "global_view_pos", "ignore_index", "max_dynamic_patch", "min_dynamic_patch", "pad2square",
    "projector_config", "ps_version", "scale_factor", "select_layer", "spatial_merge_size", "template",
    "tile_tag", "use_backbone_lora", "use_image_newline_parameter", "use_llm_lora", "use_thumbnail",
    "apply_spec_augment", "median_filter_width", "mm_tokens_per_image", "num_mel_bins",
    "use_weighted_layer_sum", "projector_hidden_act",
}
_HARMLESS = _COMMON | _LENGTHS | _COMPUTED | _INPUTS
# Of a state of fixed size: left out where the layers that have one are known.
_OF_STATES = re.compile(
    r"^(mamba|ssm|conv|conv1d|short_conv|linear|time_step|lru|state|use_mamba)_|^(expand|chunk_size)$"
    r"|^(n_mamba_heads|n_groups|hidden_mamba_act|use_conv_bias|num_mem_blocks|w_init_variance_scale)$"
    r"|^(use_associative_scan|use_mambapy|rescale_prenorm_residual|use_mem_rope|use_mem_eff_path)$"
)


def harmless(key: str, states: bool) -> bool:
    """Whether a key changes nothing of the cache. `states`: layers with a state of fixed size are known."""
    return key in _HARMLESS or bool(_FORMS.search(key)) or (states and bool(_OF_STATES.search(key)))


def unread(config: Mapping[str, Any], read: Collection[str], states: bool = False) -> str:
    """The keys that were not read and may shape the cache, with values that are short; "" without any."""
    found = []
    for key, value in config.items():
        if not value or key in read or harmless(key, states):
            continue
        brief = isinstance(value, (int, str)) and value is not True and len(str(value)) < 40
        found.append(f"{key} {value}" if brief else key)
    many = "it" if len(found) == 1 else "they"
    return f"not read: {', '.join(found)}; {many} may change what the cache takes" if found else ""
