"""diffusers: a tiny UNet learns to remove noise, and a scheduler samples from it."""

import torch
from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel

torch.manual_seed(0)
model = UNet2DModel(
    sample_size=16,
    in_channels=1,
    out_channels=1,
    layers_per_block=1,
    block_out_channels=(16, 32),
    norm_num_groups=8,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
)
scheduler = DDPMScheduler(num_train_timesteps=20)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
images = torch.randn(4, 1, 16, 16)
for _ in range(3):
    noise, steps = torch.randn_like(images), torch.randint(0, 20, (4,))
    predicted = model(scheduler.add_noise(images, noise, steps), steps).sample
    loss = torch.nn.functional.mse_loss(predicted, noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
pipeline = DDPMPipeline(unet=model.eval(), scheduler=scheduler)
pipeline.set_progress_bar_config(disable=True)
made = pipeline(
    batch_size=1,
    num_inference_steps=4,
    output_type="np",
    generator=torch.Generator().manual_seed(1),
).images
print("image", float(made.mean()), float(made.std()))
