/** As much of a Redis of an older version as it takes to be recognised. */
import { type AddressInfo, createServer, type Socket } from 'node:net';

export async function startOldRedis(version: string): Promise<{ url: string; close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    let unread = '';
    socket.setEncoding('utf8').on('data', (text: string) => {
      unread += text;
      for (let command = next(); command !== null; command = next()) socket.write(answer(command, version));
    });

    /** One command: an array of bulk strings, without line ends in them. */
    function next(): string[] | null {
      const lines = unread.split('\r\n');
      const parts = Number(lines[0]?.slice(1));
      const needed = 1 + 2 * parts;
      if (!(parts > 0) || lines.length <= needed) return null;
      unread = lines.slice(needed).join('\r\n');
      return Array.from({ length: parts }, (_, n) => lines[2 + 2 * n] ?? '');
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

function answer([name = '']: string[], version: string): string {
  if (/^info$/i.test(name)) {
    const info = `# Server\r\nredis_version:${version}\r\nloading:0\r\n`;
    return `$${Buffer.byteLength(info)}\r\n${info}\r\n`;
  }
  if (/^client$/i.test(name)) return '+OK\r\n';
  return `-ERR unknown command '${name}'\r\n`;
}
