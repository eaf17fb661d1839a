/* The rows of the operations: only data, so that every wing above can read them. */
#include "api/operations.h"

#define ROTATED "batch,num_heads,n,head_dim"

const struct api_operation api_operations[PE_N_OPERATIONS] = {
    [PE_ENCODE] =
        {
            .route = {.pattern = "/encode",
                      .methods = API_BY_GET | API_BY_POST | API_BY_QUERY,
                      .operation = PE_ENCODE,
                      .group = "compute",
                      .summary = "a scheme's tensors: tables, cosines and sines, biases, indices",
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
                      .group = "compute",
                      .summary = "queries and keys rotated",
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
                      .group = "compute",
                      .summary = "attention maps, outputs and entropies under any scheme",
                      .example = "{\"scheme\":\"alibi\",\"tokens\":[\"the\",\"cat\",\"saw\",\"the\",\"dog\"],"
                                 "\"num_heads\":1,\"digits\":3}"},
            .tensor = "q",
            .component = "Attention",
            .takes_tokens = true,
            .prefix = "attention-",
            .text = "attention",
            .n_choose = 2,
        },
};
