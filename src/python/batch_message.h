// Messages of a WorkerChannel: a number, a pickle, and tensors that the pickle leaves out.
//
// Views of one storage whose bytes overlap share memory on the other side too. Of a storage only
// the bytes that tensors look at travel: within the message while they are few, else in a block of
// their own. Memory that is such a block already (WorkerChannel::allocate) is handed over as it is.
#pragma once

#include "data/worker_channel.h"
#include "python/common.h"

namespace taeda::python {

// Sends; `items` is a list of Tensors and UntypedStorages. False when there is no memory to share
// left: nothing was sent.
bool send_message(data::WorkerChannel& channel, int64_t tag, PyObject* pickle, PyObject* items);

// (tag, pickle, items, bytes of the items) of a message, which it releases. Where this process
// holds many blocks already (it keeps batches), tensors are copied to memory of their own.
PyObject* unpack_message(data::WorkerChannel& channel, data::Block* message);

}  // namespace taeda::python
