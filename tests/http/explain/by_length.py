"""Configurations whose scaling depends on the length of the sequence, and lengths below, at and beyond the border of each."""

PHI = {"model_type": "phi3", "hidden_size": 512, "num_attention_heads": 32, "num_hidden_layers": 2, "max_position_embeddings": 131072,
       "original_max_position_embeddings": 4096, "rope_theta": 10000.0}
BY_LENGTH = {
    "dynamic": {"model_type": "llama", "hidden_size": 512, "num_attention_heads": 32, "max_position_embeddings": 2048, "num_hidden_layers": 2,
                "rope_theta": 10000.0, "rope_scaling": {"type": "dynamic", "factor": 2.0}},
    "longrope": {**PHI, "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.5, 2, 3, 3, 4, 5, 6], "long_factor": [1.0, 2, 4, 8, 16, 24, 32, 64]}},
    "two_factors": {**PHI, "model_type": "phimoe", "rope_scaling": {
        "type": "longrope", "short_factor": [1.0] * 8, "long_factor": [4.0] * 8, "short_mscale": 1.1, "long_mscale": 1.25}}}
BORDERS = {"dynamic": (2048, 4096), "longrope": (4096, 131072), "two_factors": (4096, 131072)}  # and what it is stretched to


def lengths_of(name, length=None):
    border, stretched = BORDERS[name]
    near = (1, 100, border - 1, border, border + 1, border + 2, 2 * border, stretched - 1, stretched, stretched + 1, 3 * stretched, length or 1)
    return sorted({n for n in near if n <= (length or n)})
