"""What torch.library is made of: schemas from annotations, gradients, checks."""
