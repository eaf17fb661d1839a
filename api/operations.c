/* The rows of the operations: only data, so that every wing above can read them. */
#include "api/operations.h"

const struct api_method_row api_methods[] = {{"GET", API_BY_GET},
                                             {"HEAD", API_BY_GET},
                                             {"POST", API_BY_POST},
                                             {"QUERY", API_BY_QUERY},
                                             {"PUT", API_BY_PUT},
                                             {"DELETE", API_BY_DELETE},
                                             {NULL, 0}};

#define ROTATED "batch,num_heads,n,head_dim"

const struct api_operation api_operations[PE_N_OPERATIONS] = {
    [PE_ENCODE] =
        {
            .route = {.pattern = "/encode",
                      .methods = API_BY_GET | API_BY_POST | API_BY_QUERY,
                      .operation = PE_ENCODE,
                      .kind = API_COMPUTES,
                      .summary = "a scheme's tensors: tables, cosines and sines, biases, indices",
                      .tool = "encode",
                      .title = "Compute an encoding",
                      .description = "The tensors of a scheme or preset at given positions: tables, cos and sin, "
                                     "biases, relative tables, indices. Use it for "
                                     "the exact numbers of a model's positional encoding.",
                      .example = "{\"scheme\":\"rope\",\"len\":4,\"head_dim\":8}"},
            .tensor = "x",
            .prefix = "encode-",
            .text = "an encoding",
        },
    [PE_ROTATE] =
        {
            .route = {.pattern = "/rotate",
                      .methods = API_BY_POST,
                      .operation = PE_ROTATE,
                      .kind = API_COMPUTES,
                      .summary = "queries and keys rotated",
                      .tool = "rotate",
                      .title = "Rotate queries and keys",
                      .description = "Queries q and keys k after the rotation of a RoPE scheme or preset. Use it to "
                                     "see what a rotation does to vectors, or what a port should have computed. "
                                     "Tensors are nested lists or {\"npy\":\"<base64>\"}.",
                      .example = "{\"scheme\":\"rope\",\"layout\":\"half\",\"offset\":3,\"q\":[[1,0,0,1],[1,0,0,1]],"
                                 "\"digits\":4}"},
            .tensor = "q",
            .prefix = "rotate-",
            .text = "a rotation",
            .n_choose = 1,
            .renamed = {{"q_out", "q", ROTATED}, {"k_out", "k", ROTATED}},
        },
    [PE_ATTEND] =
        {
            .route = {.pattern = "/attention",
                      .methods = API_BY_POST,
                      .operation = PE_ATTEND,
                      .kind = API_COMPUTES,
                      .summary = "attention maps, outputs and entropies under any scheme",
                      .tool = "attention",
                      .title = "Compute attention",
                      .description = "Scores, probabilities, outputs and entropies of attention under any scheme, from "
                                     "q and k, or from tokens "
                                     "alone. Use it to see where a query looks.",
                      .example = "{\"scheme\":\"alibi\",\"tokens\":[\"the\",\"cat\",\"saw\",\"the\",\"dog\"],"
                                 "\"num_heads\":1,\"digits\":3}",
                      .component = "Attention"},
            .tensor = "q",
            .takes_tokens = true,
            .prefix = "attention-",
            .text = "attention",
            .n_choose = 2,
        },
};
