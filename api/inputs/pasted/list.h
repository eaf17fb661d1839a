/* Forms of texts, in the order in which they are tried. */
PASTED(log, "a log of llama.cpp's loader")
PASTED(dump, "a table of gguf-dump")
PASTED(modelfile, "a Modelfile")
PASTED(name, "the name of a model")
PASTED(call, "a call of Python")
PASTED(command, "a command")
PASTED(printed, "a config that was printed")
PASTED(yaml, "YAML")
