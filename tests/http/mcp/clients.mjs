/* An official client calls every tool: node clients.mjs CLIENT URL < {"tool": arguments}; prints what it has received as JSON.
 * CLIENT: sdk@1 (2025-11-25), client@2 pinned to 2026-07-28 ("pinned"), or left to choose ("auto"). */
import { readFileSync } from 'node:fs';

const [kind, url] = process.argv.slice(2);
const calls = JSON.parse(readFileSync(0, 'utf8'));
const me = { name: 'posenc-test', version: '1' };

async function connected() {
  if (kind === 'sdk@1') {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const client = new Client(me);
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    return { client, call: (ask, more) => client.callTool(ask, undefined, more) };
  }
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const mode = kind === 'pinned' ? { pin: '2026-07-28' } : 'auto';
  const client = new Client(me, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return { client, call: (ask, more) => client.callTool(ask, more) };
}

const { client, call } = await connected();
const found = { server: client.getServerVersion(), instructions: client.getInstructions(), tools: {}, progress: [] };
found.listed = (await client.listTools()).tools.map((tool) => tool.name);
found.resources = (await client.listResources()).resources.length;
found.prompts = (await client.listPrompts()).prompts.map((prompt) => prompt.name);
found.read = (await client.readResource({ uri: 'posenc://schemes/rope' })).contents[0].text.slice(0, 6);
found.prompt = (await client.getPrompt({ name: 'port_differs', arguments: { model: 'mine' } })).messages.length;
for (const [name, args] of Object.entries(calls)) {
  const answer = await call({ name, arguments: args }, { onprogress: (event) => found.progress.push(event.progress) });
  found.tools[name] = { structured: answer.structuredContent, kinds: answer.content.map((one) => one.type), refused: answer.isError ?? false };
}

/* A client that leaves: the request ends, and so does the training. */
const leaving = new AbortController();
const left = call({ name: 'experiment', arguments: { ...calls.experiment, steps: 2000 } },
  { signal: leaving.signal, onprogress: () => leaving.abort() }).then(() => 'answered', () => 'left');
found.left = await left;
await client.close();
process.stdout.write(JSON.stringify(found));
