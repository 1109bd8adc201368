// What is copied to connect an agent, and what an agent is told: the one source of these texts. A test of the app copies each from
// the window and runs it.

import { bytes, plural, seconds } from './format';
import type { ImageView, Settings } from './ipc/types';

export type Way = 'terminal' | 'python' | 'node';

export interface Example {
  name: string;
  /** What to do with it. */
  how: string;
  text: (socket: string) => string;
}

export const EXAMPLES: Record<Way, Example> = {
  terminal: {
    name: 'Command line',
    how: 'Paste it into a terminal. It prints 42.',
    text: () => `sandtray run --language python --code 'print(6 * 7)'`,
  },
  python: {
    name: 'Python',
    how: 'Save it as try.py and start it with “python3 try.py”. It prints 42.',
    text: (socket) => `import json, socket

s = socket.socket(socket.AF_UNIX)
s.connect(${JSON.stringify(socket)})
lines = s.makefile("rw", encoding="utf-8")

def call(method, params):
    request = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
    lines.write(json.dumps(request) + "\\n")
    lines.flush()
    answer = json.loads(lines.readline())
    if "error" in answer:
        raise SystemExit(answer["error"]["message"])
    return answer["result"]

call("hello", {"name": "my agent"})
result = call("code.run", {"language": "python", "code": "print(6 * 7)"})
print(result["stdout"], end="")
`,
  },
  node: {
    name: 'Node',
    how: 'Save it as try.js and start it with “node try.js”. It prints 42.',
    text: (socket) => `const connection = require("node:net").connect(${JSON.stringify(socket)});
const lines = require("node:readline").createInterface({ input: connection });

const ask = (method, params) =>
  connection.write(JSON.stringify({ jsonrpc: "2.0", id: method, method, params }) + "\\n");

ask("hello", { name: "my agent" });
ask("code.run", { language: "python", code: "print(6 * 7)" });

lines.on("line", (line) => {
  const answer = JSON.parse(line);
  if (answer.error) console.error(answer.error.message);
  else if (answer.id === "code.run") process.stdout.write(answer.result.stdout);
  if (answer.error || answer.id === "code.run") connection.end();
});
`,
  },
};

export const WAYS = Object.keys(EXAMPLES) as Way[];

/** What an agent is told of the capability, for a person. */
export function told(images: readonly ImageView[], limits: Settings['limits']): string {
  const languages = images.map(({ title, language_version: version }) => {
    if (/^[\d.]+$/.test(version)) return `${title} ${version}`;
    return version.startsWith('Node') ? `${title} (${version})` : title;
  });
  const last = languages.at(-1);
  const named = languages.length > 1 ? `${languages.slice(0, -1).join(', ')} or ${last}` : (last ?? 'a language');
  const cpus = limits.cpus === 1 ? 'one processor' : plural(limits.cpus, 'processor');
  return (
    `It may run a short program in ${named}. Each program runs alone in a fresh container without a network, and nothing is kept between two of them. ` +
    `The agent gets back what the program printed and the files that it wrote. ` +
    `A program may take ${seconds(limits.seconds)}, ${cpus} and ${bytes(limits.memory_mb * 2 ** 20)} of memory; it may print ${bytes(limits.output_kb * 1024)} and be given or write ${bytes(limits.files_mb * 2 ** 20)} of files.`
  );
}
