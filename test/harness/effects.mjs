/**
 * A server of tools over standard input and output whose one tool has an effect that can be counted: each call of `mark`
 * writes a line with its token to the file that the first argument names.
 */
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [, , file] = process.argv;
const inputSchema = { type: 'object', properties: { token: { type: 'string' } }, required: ['token'] };
const tools = [{ name: 'mark', description: 'Writes down a token.', inputSchema }];

function answerTo(method, params) {
  switch (method) {
    case 'initialize': {
      const { protocolVersion } = params;
      return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'effects', version: '1' } };
    }
    case 'tools/list':
      return { tools };
    case 'tools/call':
      appendFileSync(file, `${params.arguments.token}\n`);
      return { content: [{ type: 'text', text: `marked ${params.arguments.token}` }] };
    default:
      return null;
  }
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const result = answerTo(method, params);
  const failed = { error: { code: -32601, message: `no such method: ${method}` } };
  process.stdout.write(
    `${JSON.stringify({ jsonrpc: '2.0', id, ...(result === null ? failed : { result }) })}\n`,
  );
});
