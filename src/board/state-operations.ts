/** How the gateway is: for probes, and for who collects metrics. */
import * as z from 'zod';
import type { ChannelStatus } from '../core/channel.js';
import { type Operation, operation } from './operation.js';

const Ready = z.strictObject({
  status: z.enum(['ready', 'not ready']),
  channels: z.record(
    z.string(),
    z.strictObject({
      ...{ connected: z.boolean(), since: z.iso.datetime() },
      last_error: z.string().nullable().optional().meta({ description: 'Only with the token.' }),
    }),
  ),
});

export function stateOperations({
  ready,
  metrics,
}: {
  ready(): Record<string, ChannelStatus>;
  metrics(): Promise<{ body: string; contentType: string }>;
}): Operation[] {
  return [
    operation({
      ...{ method: 'GET', path: '/health', says: 'Whether the process answers.', isOpen: true },
      answers: { 200: { says: 'It does.', json: z.strictObject({ status: z.literal('ok') }) } },
      run: async () => ({ status: 200, json: { status: 'ok' } }),
    }),
    operation({
      ...{ method: 'GET', path: '/ready', says: 'Whether every channel is connected.', isOpen: true },
      answers: {
        200: { says: 'Every one is.', json: Ready },
        503: { says: 'One is not.', json: Ready },
      },
      async run({ isTrusted }) {
        const states = ready();
        const channels = Object.entries(states).map(([name, { connected, since, lastError }]) => [
          name,
          {
            ...{ connected, since: new Date(since).toISOString() },
            // Probes need no reason; in its words there may be addresses of this network.
            ...(isTrusted && { last_error: lastError }),
          },
        ]);
        const isReady = Object.values(states).every(({ connected }) => connected);
        const json = { status: isReady ? 'ready' : 'not ready', channels: Object.fromEntries(channels) };
        return { status: isReady ? 200 : 503, json };
      },
    }),
    operation({
      ...{ method: 'GET', path: '/metrics', says: 'Metrics, in the format of Prometheus.' },
      answers: { 200: { says: 'As they are now.', media: 'text/plain' } },
      async run() {
        const { body, contentType } = await metrics();
        return { status: 200, content: body, headers: { 'Content-Type': contentType } };
      },
    }),
  ];
}
