/** The counterpart of `processes.ts`: a server process answers the calls of its parent. */

export function answerCalls<Calls extends object>(calls: Calls): void {
  process.on('message', async (asked: { id: number; name: keyof Calls; values: unknown[] }) => {
    const { id, name, values } = asked;
    try {
      const call = calls[name] as (...values: unknown[]) => unknown;
      process.send?.({ id, result: await call(...values) });
    } catch (error) {
      process.send?.({ id, error: String(error) });
    }
  });
  process.on('disconnect', () => process.exit());
  process.send?.('ready');
}
