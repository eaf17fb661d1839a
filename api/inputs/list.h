/* All content types with their readers. A body of any other type is read as the first. */
INPUT("application/json", json_body)
INPUT("multipart/form-data", multipart)
INPUT("application/vnd.safetensors", safetensors)
INPUT("application/x-npy", npy)
INPUT("application/zip", npz)
INPUT("application/x-gguf", gguf)
INPUT("application/octet-stream", octets)
