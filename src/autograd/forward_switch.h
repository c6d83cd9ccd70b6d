// Forward mode as a switch of the calling thread: while it is off, operators give no tangents and
// tensors show none. In the order in which they were made, switches and the scopes of levels nest.
#pragma once

namespace taeda::autograd {

bool forward_enabled();
void set_forward_enabled(bool enabled);

}  // namespace taeda::autograd
