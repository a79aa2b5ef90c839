/** The parts of Discord's channel; `listen.ts` and `send.ts` use them. */
import type { ChannelHost } from '../../core/channel.js';
import { createState } from '../kit/supervise.js';
import { createApi } from './api.js';
import { Directory, Identity } from './directory.js';
import { Faces } from './faces.js';
import { createUploads } from './files.js';
import { Answers, Presses } from './interactions.js';
import type { DiscordOptions } from './options.js';
import { createResends } from './resend.js';
import { GatewaySession } from './session.js';
import { createQuotes, Webhooks } from './webhooks.js';

export type DiscordParts = ReturnType<typeof createParts>;

export function createParts(host: ChannelHost<DiscordOptions>) {
  const { options, clock, log } = host;
  const api = createApi(options, host);
  const base = { api, clock, log };
  const identity = new Identity(base);
  const directory = new Directory();
  const faces = new Faces(base, host);
  const webhooks = new Webhooks(base, identity, directory, faces);
  const resends = createResends(base, identity, webhooks);
  return {
    ...base,
    host,
    options,
    identity,
    directory,
    faces,
    webhooks,
    resends,
    session: new GatewaySession(host, identity),
    answers: new Answers(base, resends),
    presses: new Presses(base),
    quotes: createQuotes(base, directory),
    uploads: createUploads(directory),
    /** State of the connection, and of storing. */
    connecting: createState(clock),
    storing: createState(clock),
  };
}
