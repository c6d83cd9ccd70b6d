"""lightning: Trainer.fit with validation and a checkpoint."""

import tempfile

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)
        )

    def training_step(self, batch, index):
        loss = torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        print("loss", loss.item())
        return loss

    def validation_step(self, batch, index):
        loss = torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.log("validation", loss)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


lightning.seed_everything(0, verbose=False)
data = torch.utils.data.TensorDataset(torch.randn(32, 8), torch.arange(32) % 3)
loader = torch.utils.data.DataLoader(data, batch_size=16)
with tempfile.TemporaryDirectory() as folder:
    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        default_root_dir=folder,
        callbacks=[ModelCheckpoint(folder, monitor="validation")],
    )
    trainer.fit(Classifier(), loader, loader)
    print("validation", trainer.callback_metrics["validation"].item())
