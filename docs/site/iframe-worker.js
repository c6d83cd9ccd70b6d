// Opened as files, pages may not start a Worker: the search then runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      this.early = [];
      const inside = this.frame.contentWindow;
      inside.postMessage = data => {
        const event = new MessageEvent("message", { data });
        if (this.onmessage) this.onmessage(event);
        this.dispatchEvent(event);
      };
      inside.importScripts = () => {};
      inside.__index = window.__index;
      const script = inside.document.createElement("script");
      script.onload = () => {
        const waiting = this.early;
        this.early = null;
        waiting.forEach(data => this.postMessage(data));
      };
      script.src = url;
      inside.document.body.append(script);
    }
    postMessage(data) {
      if (this.early) this.early.push(data);
      else this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }
    terminate() { this.frame.remove(); }
  };
}
