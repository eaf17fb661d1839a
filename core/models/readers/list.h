/* The tools, in the order of answers. */
READER(transformers4)
READER(transformers5)
READER(vllm)
READER(llama_cpp)
