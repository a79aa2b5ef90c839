/** The platforms: a token that is checked and saved, or WhatsApp's code to be scanned or typed. */
import { useEffect, useId, useState } from 'preact/hooks';
import type { ChannelSetup, TokenPlatform } from '../../../src/core/setup.ts';
import { useTexts } from '../app.ts';
import { filled } from '../texts/texts.ts';
import { Told, useSteps } from './outcome.tsx';
import { checkToken, connectWhatsApp, linkCode, reread, saveToken, setup } from './requests.ts';

const LOOK_EVERY_MS = 1_000;

export function Platform() {
  const { setup: texts } = useTexts();
  const id = useId();
  const [tokens, setTokens] = useState({ telegram: '', discord: '' });
  const set = (platform: TokenPlatform) => (token: string) => setTokens({ ...tokens, [platform]: token });
  // Only the platform that one is busy with shows its buttons.
  const isDiscord = tokens.discord !== '';
  const isTelegram = tokens.telegram !== '' || !isDiscord;
  const whatsapp = setup.value?.channels.whatsapp;
  const isConnecting = Object.values(setup.value?.channels ?? {}).some(
    ({ state, isConnected }) => state === 'on' && !isConnected,
  );
  useEffect(() => {
    if (!isConnecting) return;
    const timer = setInterval(() => void reread(), LOOK_EVERY_MS);
    return () => clearInterval(timer);
  }, [isConnecting]);
  return (
    <section class="card" aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>{texts.platform}</h2>
      <p class="soft small">{texts.platformHint}</p>
      <Token
        platform="telegram"
        label={texts.telegramToken}
        hint={texts.telegramHint}
        token={tokens.telegram}
        set={set('telegram')}
        isActive={isTelegram}
      />
      <hr />
      <Token
        platform="discord"
        label={texts.discordToken}
        hint={texts.discordHint}
        token={tokens.discord}
        set={set('discord')}
        isActive={isDiscord}
      />
      <hr />
      {whatsapp && <WhatsApp whatsapp={whatsapp} link={setup.value?.link ?? null} />}
    </section>
  );
}

function State({ channel }: { channel: ChannelSetup | undefined }) {
  const { setup: texts } = useTexts();
  if (channel === undefined) return null;
  if (channel.state !== 'on') return <span class="tag">{texts.none}</span>;
  if (channel.heldBy !== null)
    return <span class="tag good">{filled(texts.elsewhere, { gateway: channel.heldBy })}</span>;
  if (channel.isConnected) return <span class="tag good">{texts.connected}</span>;
  return (
    <span class={`tag ${channel.error === null ? 'warn' : 'bad'}`}>{channel.error ?? texts.connecting}</span>
  );
}

interface TokenProps {
  platform: TokenPlatform;
  label: string;
  hint: string;
  token: string;
  set: (token: string) => void;
  isActive: boolean;
}

function Token({ platform, label, hint, token, set, isActive }: TokenProps) {
  const { setup: texts } = useTexts();
  const id = useId();
  const channel = setup.value?.channels[platform];
  const { outcome, step, save } = useSteps();

  const check = () =>
    step(texts.checking, async () => {
      const tried = await checkToken(platform, token.trim());
      if (!tried.works) return { kind: 'failed', says: tried.says };
      const { says, invite, warnings } = tried;
      const link = invite && (
        <a href={invite} target="_blank" rel="noopener noreferrer">
          {texts.invite}
        </a>
      );
      return { kind: 'done', says: [says, ' ', link], warnings };
    });

  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    await save(
      () => saveToken(platform, token.trim()),
      () =>
        setup.value?.channels[platform].isConnected === true ||
        setup.value?.channels[platform].heldBy !== null,
    );
    set('');
  }

  return (
    <form class="stack" onSubmit={submit}>
      <label>
        <span class="row">
          {label} <State channel={channel} />
        </span>
        <input
          type="password"
          autocomplete="off"
          spellcheck={false}
          required
          value={token}
          aria-label={label}
          placeholder={channel?.state === 'on' ? '••••••••' : ''}
          aria-describedby={id}
          onInput={({ currentTarget }) => set(currentTarget.value)}
        />
      </label>
      <p id={id} class="hint">
        {channel?.state === 'on' ? texts.tokenStored : hint}
      </p>
      {isActive && (
        <div class="row">
          <button type="button" disabled={token.trim() === ''} onClick={check}>
            {texts.check}
          </button>
          <button type="submit" class="primary wide" disabled={token.trim() === ''}>
            {texts.save}
          </button>
        </div>
      )}
      <Told outcome={outcome} />
    </form>
  );
}

function WhatsApp({ whatsapp, link }: { whatsapp: ChannelSetup; link: number | null }) {
  const { setup: texts } = useTexts();
  const id = useId();
  const [phone, setPhone] = useState('');
  const connecting = useSteps();
  const coding = useSteps();
  const { heldBy } = whatsapp;
  if (whatsapp.state === 'on' && heldBy !== null) {
    return (
      <div class="stack">
        <h3 class="small row">
          {texts.whatsapp} <State channel={whatsapp} />
        </h3>
        <p>{filled(texts.linkElsewhere, { gateway: heldBy })}</p>
      </div>
    );
  }
  const isLinking = whatsapp.state === 'on' && !whatsapp.isConnected;
  return (
    <div class="stack">
      <h3 class="small row">
        {texts.whatsapp} <State channel={whatsapp} />
      </h3>
      <p class="soft small">{texts.whatsappHint}</p>
      {!whatsapp.isConnected && (
        <div class="row">
          <button
            type="button"
            onClick={() =>
              connecting.save(connectWhatsApp, () => setup.value?.channels.whatsapp.state === 'on')
            }
          >
            {texts.connectWhatsApp}
          </button>
        </div>
      )}
      <Told outcome={connecting.outcome} />
      {isLinking && link === null && <p class="soft small">{texts.waitingForCode}</p>}
      {isLinking && link !== null && (
        <>
          <p class="small">{texts.scan}</p>
          <img class="qr" alt={texts.qr} src={`api/board/setup/whatsapp/code.svg?n=${link}`} />
        </>
      )}
      {isLinking && (
        <form
          class="stack"
          onSubmit={(event) => {
            event.preventDefault();
            void coding.step(texts.checking, async () => {
              const tried = await linkCode(phone);
              if (!tried.works) return { kind: 'failed', says: tried.says };
              return { kind: 'done', says: filled(texts.typeCode, { code: tried.says }) };
            });
          }}
        >
          <label>
            {texts.phone}
            <input
              type="tel"
              autocomplete="tel"
              required
              value={phone}
              aria-describedby={id}
              onInput={({ currentTarget }) => setPhone(currentTarget.value)}
            />
          </label>
          <p id={id} class="hint">
            {texts.phoneHint}
          </p>
          <div class="row">
            <button type="submit">{texts.pairingCode}</button>
          </div>
        </form>
      )}
      <Told outcome={coding.outcome} />
    </div>
  );
}
