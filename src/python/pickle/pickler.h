// Writes a Python object as a pickle, as Python's pickler does, but for names, which are PyTorch's,
// and storages, which become persistent ids with a number, to be written elsewhere.
//
// Plain values, containers and tensors are written here; the rules of `_pickle_writer.py` describe
// all other objects.
#pragma once

#include "python/pickle/memo.h"
#include "python/pickle/storages.h"
#include "python/pickle/writer.h"

namespace taeda::python {

// taeda.serialization._pickle_writer._Rules
struct PickleRules {
  explicit PickleRules(PyObject* rules);

  PyRef describe;        // an object -> a Name, a StorageReference or a Reduction
  PyRef name;            // the type Name: (module, name)
  PyRef storage;         // the type StorageReference: (storage, dtype or None)
  PyRef rebuild_tensor;  // a Name
  PyRef ordered_dict;    // the type
  PyRef storage_names;   // dtype, or None -> Name
};

class Pickler {
 public:
  Pickler(const PickleRules& rules, int protocol) : rules_(rules), writer_(protocol) {}
  Pickler(const Pickler&) = delete;
  Pickler& operator=(const Pickler&) = delete;

  void dump(PyObject* object);
  const std::string& bytes() const { return writer_.bytes(); }
  PyRef storages() const { return storages_.list(); }

 private:
  void save(PyObject* object);
  bool save_plain(PyObject* object);
  bool save_recursive(PyObject* object);

  bool recall(PyObject* object);
  void memoize(PyObject* object) { writer_.put(memo_.add(object)); }
  // For an object that its own parts refer to: drops what was written of it and recalls it.
  bool recall_recursive(PyObject* object, size_t values, bool marked);

  void save_tuple(PyObject* tuple);
  void save_list(PyObject* list);
  void save_dict(PyObject* dict);
  void save_set(PyObject* set);
  void save_frozenset(PyObject* set);
  void append_items(PyObject* list);
  void set_items(PyObject* pairs);
  void set_dict_items(PyObject* dict);
  template <class SaveNext>
  void save_batches(Py_ssize_t size, unsigned char one, unsigned char many, SaveNext save_next);

  bool save_tensor(PyObject* object);
  void save_storage(PyObject* storage, PyObject* dtype);
  void save_integers(IntSpan values);
  PyObject* location(Device device);

  void save_name(PyObject* name);
  void save_described(PyObject* object);
  void save_reduction(PyObject* reduction, PyObject* object);
  void save_state(PyObject* state, PyObject* setter, PyObject* object);

  const PickleRules& rules_;
  PickleWriter writer_;
  PickledObjects memo_;
  PickledStorages storages_;
  std::vector<std::pair<Device, PyRef>> locations_;  // each text once, which the memo needs
  int64_t count_ = 0;
};

}  // namespace taeda::python
