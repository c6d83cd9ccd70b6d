"""Recommendation from who liked what."""

from itertools import pairwise

import torch
from torch import nn


class NeuMF(nn.Module):
    """He et al., "Neural collaborative filtering", 2017: the product of two embeddings beside a
    perceptron over two others; their outputs joined give one score."""

    def __init__(self, users, items, factors=64, layers=(256, 256, 128, 64)):
        super().__init__()
        self.user_factors = nn.Embedding(users, factors)
        self.item_factors = nn.Embedding(items, factors)
        self.user_features = nn.Embedding(users, layers[0] // 2)
        self.item_features = nn.Embedding(items, layers[0] // 2)
        perceptron = []
        for n_in, n_out in pairwise(layers):
            perceptron += [nn.Linear(n_in, n_out), nn.ReLU()]
        self.perceptron = nn.Sequential(*perceptron)
        self.score = nn.Linear(factors + layers[-1], 1)
        for table in self.children():
            if isinstance(table, nn.Embedding):
                nn.init.normal_(table.weight, std=0.01)

    def forward(self, user, item):
        product = self.user_factors(user) * self.item_factors(item)
        features = torch.cat([self.user_features(user), self.item_features(item)], 1)
        joined = torch.cat([product, self.perceptron(features)], 1)
        return self.score(joined).squeeze(1)
