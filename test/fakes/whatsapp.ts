/**
 * A WhatsApp on loopback: WhatsApp Web's own protocol, with people whose phones hold Signal sessions of their own, a
 * media server, and faults on command. The ledger has what they decrypted of us, each message once, and whether the
 * connection was cut between taking a message and saying so. What tests say to it stands in whatsapp-words.ts.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { listenAt } from './http-server.js';
import { createWatch } from './watch.js';
import { startCdn } from './whatsapp-cdn.js';
import { hushLibsignal } from './whatsapp-console.js';
import { makeDesk } from './whatsapp-desk.js';
import { makeDoings } from './whatsapp-doings.js';
import { makeLedger } from './whatsapp-ledger.js';
import { makeServerKeys } from './whatsapp-noise.js';
import { makePeople } from './whatsapp-people.js';
import { makePost } from './whatsapp-post.js';
import { makeGate } from './whatsapp-tokens.js';
import { makeTrouble } from './whatsapp-trouble.js';
import { makeVersions } from './whatsapp-versions.js';
import { speakOver } from './whatsapp-wire.js';
import type { FakeWhatsApp, FakeWhatsAppOptions } from './whatsapp-words.js';

export type * from './whatsapp-words.js';

const MEDIA_MODULE = new URL('../harness/whatsapp-media.mjs', import.meta.url).href;

export async function startFakeWhatsApp(options: FakeWhatsAppOptions = {}): Promise<FakeWhatsApp> {
  const number = options.ownNumber ?? '4915100000000';
  const people = makePeople(number);
  const keys = makeServerKeys();
  const trouble = makeTrouble();
  const complaints: string[] = [];
  const listeners: ((event: 'sent' | 'intake') => void)[] = [];
  const sockets = new Set<WebSocket>();
  const { look, until } = createWatch('the fake WhatsApp', 30_000);
  let connections = 0;
  let logins = 0;

  const hushed = hushLibsignal();
  const complain = (what: string) => void complaints.push(what);
  const cdn = await startCdn(look);
  const ledger = makeLedger(people, cdn, complain);
  const post = makePost(
    () => {
      logins += 1;
      tell('intake');
    },
    () => tell('intake'),
    complain,
  );
  const taken = () => tell('sent');
  const versions = makeVersions(look);
  const gate = makeGate(people);
  const desk = makeDesk({ people, ledger, post, trouble, versions, gate, complain, taken, look });
  const doings = makeDoings({
    people,
    post,
    put: cdn.put,
    companion() {
      const linked = desk.companion();
      if (linked === null) throw new Error('no gateway is linked');
      return linked;
    },
    ours: ledger.messageOf,
    askedAgain: ledger.askedAgain,
    takeDoubling: trouble.meetsDelivery,
  });

  function tell(event: 'sent' | 'intake'): void {
    for (const listener of listeners) listener(event);
    look();
  }

  const upgrades = new WebSocketServer({ noServer: true, maxPayload: 64 * 1024 * 1024 });
  const server = createServer(versions.serve);
  server.on('upgrade', (request, socket, head) => {
    upgrades.handleUpgrade(request, socket, head, (opened) => {
      connections += 1;
      sockets.add(opened);
      opened.on('close', () => sockets.delete(opened));
      speakOver(opened, keys, desk);
    });
  });

  function hangUp(): void {
    for (const socket of sockets) socket.terminate();
  }

  function shut(): Promise<void> {
    return new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
      hangUp();
    });
  }

  await listenAt(server, 0);
  const { port } = server.address() as AddressInfo;
  const { pn, lid } = people.own.peer;
  const { requestRetry, tellRestriction, ...said } = doings;

  return {
    url: `ws://127.0.0.1:${port}/ws/chat`,
    own: { number, pn, lid },
    scan: desk.pairing.scan,
    async enterCode(code) {
      // It is on its way when the gateway shows it.
      await until(desk.pairing.asked, `a gateway that asks for a code for ${pn}`);
      await desk.pairing.enterCode(code);
    },
    paired: () => desk.companion() !== null,
    refs: desk.pairing.refs,
    connections: () => connections,
    logins: () => logins,
    loggedIn: post.ready,

    peer: people.peer,
    group: people.group,
    hideNumber(peer) {
      people.of(peer).hidden = true;
    },
    address(peer, form) {
      people.of(peer).form = form;
    },

    ...said,
    pending: post.pending,
    sent: ledger.sent,
    sentTo: (chat) => ledger.sent.filter((sent) => sent.chat === chat),
    receipts: desk.receipts,
    presences: desk.presences,
    online: desk.online,
    reactions: ledger.reactions,
    edits: ledger.edits,
    complaints,
    cdn,
    async serveMediaHere() {
      const { serveMediaFrom } = await import('../harness/whatsapp-media.mjs');
      return serveMediaFrom(cdn);
    },
    environment: {
      NODE_OPTIONS: [process.env.NODE_OPTIONS, `--import=${MEDIA_MODULE}`].filter(Boolean).join(' '),
      COTERIE_FAKE_MEDIA_PORT: String(cdn.port),
      COTERIE_FAKE_MEDIA_CA: cdn.ca,
    },
    lookUps: versions.lookUps,
    faults: {
      ...trouble,
      ...desk.pairing.meets,
      retireBelow: versions.retireBelow,
      breakLookUp: versions.breakLookUp,
      hangUp,
      demandTokens: gate.demandTokens,
      restrict(until) {
        gate.restrict(until);
        tellRestriction(until);
      },
      closeWith: desk.endAll,
      replaced: () => desk.endAll(440),
      logOut: desk.unlink,
      badMac(peer) {
        people.of(peer).spoils = 'once';
      },
      badMacForever(peer) {
        people.of(peer).spoils = 'always';
      },
      forgetSession: (peer) => void people.of(peer).phone.forget(),
      requestRetry(id, by) {
        const found = ledger.sent.find((sent) => sent.id === id);
        if (found === undefined) throw new Error(`nothing was sent as ${id}`);
        requestRetry(found, by);
      },
    },

    onEvent: (listener) => void listeners.push(listener),
    until,
    shut,
    open: () => listenAt(server, port),
    async close() {
      await shut();
      await cdn.close();
      await post.idle();
      hushed();
    },
  };
}
