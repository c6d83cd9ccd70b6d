"""sentence-transformers: modules put together, embeddings and a loss."""

import torch
from sentence_transformers import util
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling

torch.manual_seed(0)
pooling, dense, unit = Pooling(16, "mean"), Dense(16, 8), Normalize()
features = {"token_embeddings": torch.randn(4, 7, 16), "attention_mask": torch.ones(4, 7)}
embeddings = unit(dense(pooling(features)))["sentence_embedding"]
print("embeddings", *embeddings[0].tolist())
print("similarity", *util.cos_sim(embeddings, embeddings).flatten().tolist())
print("nearest", *[hit[0]["corpus_id"] for hit in util.semantic_search(embeddings, embeddings)])
