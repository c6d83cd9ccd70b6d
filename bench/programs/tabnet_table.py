"""pytorch-tabnet: a table classified by attention over its columns, with columns' importances."""

import numpy as np
from pytorch_tabnet.tab_model import TabNetClassifier

random = np.random.default_rng(0)
x = random.normal(size=(256, 8)).astype(np.float32)
y = (x[:, 0] * x[:, 3] + x[:, 5] > 0).astype(int)
classifier = TabNetClassifier(
    n_d=4, n_a=4, n_steps=2, seed=0, device_name="cpu", optimizer_params={"lr": 0.02}, verbose=0
)
classifier.fit(
    x[:192], y[:192], eval_set=[(x[192:], y[192:])], eval_metric=["logloss"], max_epochs=4,
    batch_size=64, virtual_batch_size=32, patience=10,
)  # fmt: skip
print("loss", *classifier.history["loss"])
print("log loss", *classifier.history["val_0_logloss"])
print("importance", *classifier.feature_importances_)
print("probabilities", *classifier.predict_proba(x[:4]).flatten())
