// The search ranks by how rare words are: "torch.stack" would find StackDataset before stack. What
// has the name that was typed goes first instead, then pages whose opening has every word.
function namesFirst(query, groups) {
  const plain = text => text.replace(/<[^>]*>/g, "").trim();
  const typed = query.replace(/[*+"]|\(.*/g, " ").trim();
  const words = typed.toLowerCase().split(/[\s.]+/).filter(word => word.length > 2);
  const last = typed.split(".").pop();
  const path = typed.replace(/^(torch|taeda)\.?/, "").replace(/^F\./, "nn.functional.");
  function score(item) {
    const title = plain(item.title);
    const address = item.location.split("#")[1] || "";
    const name = address.replace(/^(torch|taeda)\./, "");
    const documented = item.location.startsWith("api/");
    if (title === last && documented) return (name === path ? 5 : 4) - name.split(".").length / 100;
    if (title.toLowerCase() === last.toLowerCase()) return 3 + documented / 2;
    const opening = (title + " " + plain(item.text || "").slice(0, 60)).toLowerCase();
    const opens = word => opening.includes(word);
    return documented && !address && words.length > 1 && words.every(opens) ? 2 : 0;
  }
  const ranked = groups.map(group => [Math.max(...group.map(score)), group]);
  ranked.sort((a, b) => b[0] - a[0]);  // stable: equal ones stay in the search's order
  groups.splice(0, groups.length, ...ranked.map(([best, group]) => {
    if (best < 3) return group;
    const scores = new Map(group.map(item => [item, score(item)]));
    return group.sort((a, b) => scores.get(b) - scores.get(a));
  }));
  return groups;
}

if (typeof window !== "undefined") {
  window.Worker = class extends window.Worker {
    constructor(...args) {
      super(...args);
      this.addEventListener("message", ({ data }) => {
        if (data.type === 3) namesFirst(this.query || "", data.data.items);
      });
    }
    postMessage(message, ...rest) {
      if (message.type === 2) this.query = message.data;
      super.postMessage(message, ...rest);
    }
  };
} else {
  module.exports = { namesFirst };
}
