import os
import tempfile

import torch
from data import fill, waves

model = fill(torch.nn.GRU(4, 6, batch_first=True)).cuda()
optimizer = torch.optim.Adam(model.parameters())
out, _ = model(waves(3, 5, 4).cuda())
out.pow(2).sum().backward()
optimizer.step()
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "checkpoint.pt")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    on_cpu = torch.load(path, map_location="cpu")
    back = torch.load(path, map_location=torch.device("cuda"))
print(sorted({str(v.device) for v in on_cpu["model"].values()}))
twin = torch.nn.GRU(4, 6, batch_first=True).cuda()
twin.load_state_dict(back["model"])
x = waves(2, 3, 4).cuda()
print(torch.equal(twin(x)[0], model(x)[0]))
print(f"{twin(x)[0].sum().item():.4f}", len(back["optimizer"]["state"]))
