"""torchmetrics: measures of classification, regression and images."""

import torch
import torchmetrics.functional as metrics

torch.manual_seed(0)
scores, labels = torch.randn(64, 4).softmax(-1), torch.randint(0, 4, (64,))
print("accuracy", metrics.accuracy(scores, labels, task="multiclass", num_classes=4).item())
print("auroc", metrics.auroc(scores, labels, task="multiclass", num_classes=4).item())
print("f1", metrics.f1_score(scores, labels, task="multiclass", num_classes=4).item())
print("kappa", metrics.cohen_kappa(scores, labels, task="multiclass", num_classes=4).item())
x, y = torch.randn(50), torch.randn(50)
print("pearson", metrics.pearson_corrcoef(x, y).item())
print("spearman", metrics.spearman_corrcoef(x, y).item())
print("r2", metrics.r2_score(x, y).item())
a, b = torch.rand(2, 3, 48, 48), torch.rand(2, 3, 48, 48)
print("ssim", metrics.structural_similarity_index_measure(a, b).item())
print("psnr", metrics.peak_signal_noise_ratio(a, b).item())
