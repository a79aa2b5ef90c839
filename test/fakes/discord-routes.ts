/** The routes of the fake Discord's API: what each does. */
import type { Cdn } from './discord-cdn.js';
import { refusalOfCommands } from './discord-commands.js';
import { isPayload, type UploadedFile } from './discord-form.js';
import type { Interactions } from './discord-interactions.js';
import type { Messages } from './discord-messages.js';
import {
  MISSING_ACCESS,
  MISSING_PERMISSIONS,
  NOT_FOUND,
  NOTHING,
  type Outcome,
  ok,
  UNKNOWN_CHANNEL,
  UNKNOWN_GUILD,
  UNKNOWN_MEMBER,
  UNKNOWN_USER,
} from './discord-outcome.js';
import { channelOf, guildOf, memberOf, roleOf, userOf } from './discord-payloads.js';
import type { Reactions } from './discord-reactions.js';
import type { Through, Webhooks } from './discord-webhooks.js';
import type { Payload, Settings } from './discord-words.js';
import type { Channel, Guild, World } from './discord-world.js';

export interface RouteParts {
  world: World;
  messages: Messages;
  interactions: Interactions;
  webhooks: Webhooks;
  reactions: Reactions;
  cdn: Cdn;
  settings: Settings;
  /** Where the gateway is. */
  gatewayUrl(): string;
  sessionsLeft(): number;
  commandId(name: string): string;
  /** The direct chat with somebody we know. */
  dmWith(userId: string): string | null;
  onHistory(): void;
}

export interface Ask {
  /** What stands in the path, in order. */
  ids: string[];
  query: URLSearchParams;
  json: Payload;
  /** Where it is not an object. */
  raw: unknown;
  files: UploadedFile[];
}

export interface Route {
  method: string;
  /** `:name` is a part of the path that is handed to `act`. */
  path: string;
  /** A token stands in the path, and none is asked for in the headers. */
  open: boolean;
  act(ask: Ask): Outcome;
}

export interface Routes {
  all: Route[];
  typing: string[];
  /** Those for all guilds, as they were put last. */
  commands(): Payload[] | null;
}

const EVERYWHERE = 'everywhere';
const MESSAGE_CONTENT_GRANTED = 1 << 19;

export function createRoutes(parts: RouteParts): Routes {
  const { world, messages, interactions, webhooks, cdn, settings } = parts;
  const typing: string[] = [];
  const commands = new Map<string, Payload[]>();

  const at = ({ ids: [id = ''] }: Ask): Channel | undefined => world.channels.get(id);

  function seen(ask: Ask, act: (channel: Channel) => Outcome): Outcome {
    const channel = at(ask);
    if (channel === undefined) return UNKNOWN_CHANNEL;
    return world.may('viewChannel', channel) ? act(channel) : MISSING_ACCESS;
  }

  function inGuild(id: string | undefined, act: (guild: Guild) => Outcome): Outcome {
    const guild = world.guilds.get(id ?? '');
    if (guild === undefined) return UNKNOWN_GUILD;
    return guild.left ? MISSING_ACCESS : act(guild);
  }

  const guilds = () => [...world.guilds.values()].filter(({ left }) => !left);

  function putCommands(scope: string, raw: unknown): Outcome {
    const refusal = refusalOfCommands(raw);
    if (refusal !== null || !Array.isArray(raw)) return refusal ?? NOT_FOUND;
    const put = raw.filter(isPayload).map((command) => ({
      id: parts.commandId(String(command.name)),
      application_id: world.bot.id,
      version: '1',
      type: 1,
      default_member_permissions: null,
      nsfw: false,
      options: [],
      ...command,
    }));
    commands.set(scope, put);
    return ok(put);
  }

  const gateway = () =>
    ok({
      url: parts.gatewayUrl(),
      shards: settings.shards,
      session_start_limit: {
        total: settings.identifiesPerDay,
        remaining: parts.sessionsLeft(),
        reset_after: 14_400_000,
        max_concurrency: settings.maxConcurrency,
      },
    });

  const application = () =>
    ok({
      id: world.bot.id,
      name: world.bot.username,
      icon: null,
      description: '',
      verify_key: '',
      bot_public: true,
      bot_require_code_grant: false,
      bot: userOf(world.bot),
      owner: null,
      team: null,
      flags: settings.messageContentGranted ? MESSAGE_CONTENT_GRANTED : 0,
      approximate_guild_count: guilds().length,
    });

  function directChat(userId: string): Outcome {
    const channel = world.channels.get(parts.dmWith(userId) ?? '');
    return channel === undefined ? UNKNOWN_USER : ok(channelOf(channel));
  }

  function user(id = ''): Outcome {
    const known = world.users.get(id);
    return known === undefined ? UNKNOWN_USER : ok(userOf(known));
  }

  function member(guild: Guild, id = ''): Outcome {
    const known = guild.members.get(id);
    return known === undefined ? UNKNOWN_MEMBER : ok(memberOf(known));
  }

  function history(ask: Ask): Outcome {
    parts.onHistory();
    return messages.list(at(ask), ask.query);
  }

  function refreshed(urls: unknown): Outcome {
    const originals = Array.isArray(urls) ? urls.map(String) : [];
    return ok({
      refreshed_urls: originals.map((original) => ({ original, refreshed: cdn.refreshed(original) })),
    });
  }

  const through = ({ ids: [id = '', token = ''], query, json, files }: Ask): Through => ({
    id,
    token,
    query,
    json,
    files,
  });
  const isInteraction = ({ ids: [id = ''] }: Ask) => id === world.bot.id;

  const route = (method: string, path: string, act: Route['act']): Route => ({
    method,
    path,
    act,
    open: path.includes(':token'),
  });
  const channelsOf = (guild: Guild, threads: boolean) =>
    world.channelsOf(guild).filter(({ parent, archived }) => (parent !== null) === threads && !archived);

  const all = [
    route('GET', '/gateway/bot', gateway),
    route('GET', '/users/@me', () => user(world.bot.id)),
    route('GET', '/users/@me/guilds', () => ok(guilds().map(guildOf))),
    route('POST', '/users/@me/channels', ({ json }) => directChat(String(json.recipient_id))),
    route('GET', '/users/:user', ({ ids: [id] }) => user(id)),

    route('GET', '/guilds/:guild', ({ ids: [id] }) => inGuild(id, (guild) => ok(guildOf(guild)))),
    route('GET', '/guilds/:guild/roles', ({ ids: [id] }) =>
      inGuild(id, ({ roles }) => ok([...roles.values()].map(roleOf))),
    ),
    route('GET', '/guilds/:guild/channels', ({ ids: [id] }) =>
      inGuild(id, (guild) => ok(channelsOf(guild, false).map(channelOf))),
    ),
    route('GET', '/guilds/:guild/threads/active', ({ ids: [id] }) =>
      inGuild(id, (guild) => ok({ threads: channelsOf(guild, true).map(channelOf), members: [] })),
    ),
    route('GET', '/guilds/:guild/members/:user', ({ ids: [id, userId] }) =>
      inGuild(id, (guild) => member(guild, userId)),
    ),

    route('GET', '/channels/:channel', (ask) => seen(ask, (channel) => ok(channelOf(channel)))),
    route('POST', '/channels/:channel/typing', (ask) =>
      seen(ask, (channel) => {
        const { id, parent } = channel;
        // Whoever may not write does not type either.
        if (!world.may(parent === null ? 'sendMessages' : 'sendMessagesInThreads', channel))
          return MISSING_PERMISSIONS;
        typing.push(id);
        return NOTHING;
      }),
    ),
    route('GET', '/channels/:channel/messages', history),
    route('POST', '/channels/:channel/messages', (ask) => messages.post(at(ask), ask.json, ask.files)),
    route('GET', '/channels/:channel/messages/:message', (ask) => messages.get(at(ask), ask.ids[1] ?? '')),
    route('PATCH', '/channels/:channel/messages/:message', (ask) =>
      messages.patch(at(ask), ask.ids[1] ?? '', ask.json, ask.files),
    ),
    route('DELETE', '/channels/:channel/messages/:message', (ask) =>
      messages.remove(at(ask), ask.ids[1] ?? ''),
    ),
    route('PUT', '/channels/:channel/messages/:message/reactions/:emoji/@me', (ask) =>
      parts.reactions.add(at(ask), ask.ids[1] ?? '', decodeURIComponent(ask.ids[2] ?? '')),
    ),
    route('POST', '/attachments/refresh-urls', ({ json }) => refreshed(json.attachment_urls)),

    route('GET', '/applications/@me', application),
    route('GET', '/oauth2/applications/@me', application),
    route('GET', '/applications/:application/commands', () => ok(commands.get(EVERYWHERE) ?? [])),
    route('PUT', '/applications/:application/commands', ({ raw }) => putCommands(EVERYWHERE, raw)),
    route('GET', '/applications/:application/guilds/:guild/commands', ({ ids: [, id = ''] }) =>
      inGuild(id, () => ok(commands.get(id) ?? [])),
    ),
    route('PUT', '/applications/:application/guilds/:guild/commands', ({ ids: [, id = ''], raw }) =>
      inGuild(id, () => putCommands(id, raw)),
    ),

    route(
      'POST',
      '/interactions/:interaction/:token/callback',
      ({ ids: [id = '', token = ''], json, files, query }) =>
        interactions.callback(id, token, json, files, query.get('with_response') === 'true'),
    ),
    route('GET', '/channels/:channel/webhooks', (ask) => webhooks.list(at(ask))),
    route('POST', '/channels/:channel/webhooks', (ask) => webhooks.create(at(ask), ask.json)),
    route('PATCH', '/webhooks/:webhook', ({ ids: [id = ''], json }) => webhooks.modify(id, null, json)),
    route('DELETE', '/webhooks/:webhook', ({ ids: [id = ''] }) => webhooks.erase(id, null)),
    route('PATCH', '/webhooks/:webhook/:token', ({ ids: [id = '', token = ''], json }) =>
      webhooks.modify(id, token, json),
    ),
    route('DELETE', '/webhooks/:webhook/:token', ({ ids: [id = '', token = ''] }) =>
      webhooks.erase(id, token),
    ),
    // An interaction's token is used as that of a webhook with the application's id.
    route('POST', '/webhooks/:webhook/:token', (ask) => {
      const { token, json, files } = through(ask);
      return isInteraction(ask) ? interactions.followUp(token, json, files) : webhooks.execute(through(ask));
    }),
    route('GET', '/webhooks/:webhook/:token/messages/:message', (ask) => {
      const {
        ids: [, token = '', which = ''],
      } = ask;
      return isInteraction(ask) ? interactions.read(token, which) : webhooks.read(through(ask), which);
    }),
    route('PATCH', '/webhooks/:webhook/:token/messages/:message', (ask) => {
      const {
        ids: [, token = '', which = ''],
        json,
        files,
      } = ask;
      return isInteraction(ask)
        ? interactions.change(token, which, json, files)
        : webhooks.change(through(ask), which);
    }),
    route('DELETE', '/webhooks/:webhook/:token/messages/:message', (ask) => {
      const {
        ids: [, token = '', which = ''],
      } = ask;
      return isInteraction(ask) ? interactions.remove(token, which) : webhooks.remove(through(ask), which);
    }),
  ];

  return { all, typing, commands: () => commands.get(EVERYWHERE) ?? null };
}
