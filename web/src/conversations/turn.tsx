/** A turn opened into what it saw and did. Everything in it is text, as it was sent. */
import { useEffect, useRef } from 'preact/hooks';
import type { TurnDetails } from '../../../src/board/protocol.ts';
import { useTexts } from '../app.ts';
import { Icon } from '../kit/icons.tsx';
import { PlainText } from '../kit/markdown.tsx';
import { Time } from '../kit/time.tsx';
import { languageOfPage } from '../kit/words.ts';
import { filled } from '../texts/texts.ts';
import { goTo } from './address.ts';
import { Lore } from './lore.tsx';
import { Fold, numberOf, Part } from './part.tsx';
import { useTurn } from './reads.ts';

export function Turn({ id }: { id: string }) {
  const { conversations: texts, kit, frame } = useTexts();
  const opened = useTurn(id);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    heading.current?.focus();
    const close = (event: KeyboardEvent) => {
      if (event.key === 'Escape' && !event.defaultPrevented) goTo({ turn: '' }, true);
    };
    addEventListener('keydown', close);
    return () => {
      removeEventListener('keydown', close);
      document.querySelector<HTMLElement>(`button[data-turn="${CSS.escape(id)}"]`)?.focus();
    };
  }, [id]);
  return (
    <section class="turn" aria-label={texts.turn}>
      <header>
        <h2 ref={heading} tabIndex={-1}>
          {texts.turn}
        </h2>
        <button
          type="button"
          class="quiet icon"
          aria-label={kit.close}
          onClick={() => goTo({ turn: '' }, true)}
        >
          <Icon name="close" />
        </button>
      </header>
      {opened?.kind === 'none' && (
        <p class="note">{opened.why === 'forgotten' ? texts.forgotten : opened.fault || frame.failed}</p>
      )}
      {opened?.kind === 'read' && <Details turn={opened.turn} />}
    </section>
  );
}

function Details({ turn }: { turn: TurnDetails }) {
  const { conversations: texts } = useTexts();
  const { personaId, state, startedAt, finishedAt, prompt, calls, sends, requests } = turn;
  const isOver = finishedAt !== null;
  const missing = isOver || state === 'aborted' ? texts.notRecorded : texts.notYet;
  const tokens = prompt.reduce((sum, part) => sum + part.tokens, 0);
  return (
    <>
      <p class="small soft">
        {personaId} · {texts.states[state as keyof typeof texts.states] ?? state} · <Time at={startedAt} />
        {isOver && ` · ${seconds(finishedAt - startedAt)}`}
      </p>
      <Part title={texts.recalled} note={String(turn.recalled.length)} isOpen>
        {turn.recalled.length === 0 && (
          <p class="soft">{prompt.length === 0 ? missing : texts.noneRecalled}</p>
        )}
        <ul class="recalled">
          {turn.recalled.map(({ text, source }, n) => (
            <li key={n}>
              {text} {source !== '' && <small class="soft">{source}</small>}
            </li>
          ))}
        </ul>
      </Part>
      {turn.lore !== null && <Lore lore={turn.lore} />}
      <Part title={texts.prompt} note={prompt.length === 0 ? '' : inTokens(tokens, texts.tokensAbout)}>
        {prompt.length === 0 && <p class="soft">{missing}</p>}
        {prompt.map(({ name, text, tokens: size }) => (
          <Fold
            key={name}
            title={texts.parts[name as keyof typeof texts.parts] ?? name}
            note={inTokens(size, texts.tokensAbout)}
            share={size / Math.max(1, tokens)}
          >
            <Plain text={text} />
          </Fold>
        ))}
      </Part>
      <Part title={texts.calls} note={String(calls.length)}>
        {calls.length === 0 && <p class="soft">{texts.noCalls}</p>}
        {calls.map((call) => (
          <Call key={call.id} call={call} />
        ))}
      </Part>
      <Part title={texts.sent} note={String(sends.length)}>
        {sends.length === 0 && <p class="soft">{texts.nothingSent}</p>}
        {sends.map((send, n) => (
          <div key={n} class="send">
            <p class="tiny soft">
              <Time at={send.at} /> · {texts.sends[send.state as keyof typeof texts.sends] ?? send.state}
            </p>
            <Plain text={send.text} />
            {send.error !== null && <p class="fault">{send.error}</p>}
          </div>
        ))}
      </Part>
      <Part title={texts.tokens} note={moneyOf(requests)}>
        {requests.length === 0 ? <p class="soft">{missing}</p> : <Requests requests={requests} />}
      </Part>
    </>
  );
}

function Call({
  call: { tool, arguments: given, result, failed, ms },
}: {
  call: TurnDetails['calls'][number];
}) {
  const { conversations: texts, kit } = useTexts();
  const title = (
    <>
      <span class="tool">{tool}</span>
      {failed && <span class="tag bad">{kit.callFailed}</span>}
    </>
  );
  return (
    <Fold title={title} note={ms === null ? '' : seconds(ms)}>
      <p class="tiny soft">{kit.arguments}</p>
      <Plain text={given} />
      <p class="tiny soft">{kit.result}</p>
      {result === null ? <p class="soft">{texts.noResult}</p> : <Plain text={result} />}
    </Fold>
  );
}

function Requests({ requests }: { requests: TurnDetails['requests'] }) {
  const { conversations: texts } = useTexts();
  const sumOf = (numbers: (number | null)[]) => numbers.reduce<number>((sum, each) => sum + (each ?? 0), 0);
  const cached = sumOf(requests.map(({ cachedTokens }) => cachedTokens));
  return (
    <div class="scrolls">
      <table>
        <thead>
          <tr>
            <th scope="col">{texts.model}</th>
            {[texts.input, texts.output, texts.time, texts.cost].map((title) => (
              <th key={title} scope="col" class="number">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {requests.map((request, n) => (
            <tr key={n}>
              <td>
                {request.model || '–'}
                {request.error !== null && <p class="fault small">{request.error}</p>}
              </td>
              <td class="number">{numberOf(request.inputTokens)}</td>
              <td class="number">{numberOf(request.outputTokens)}</td>
              <td class="number">{seconds(request.ms)}</td>
              <td class="number">{request.cost === null ? '–' : money(request.cost)}</td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">{texts.together}</th>
            <td class="number">{numberOf(sumOf(requests.map(({ inputTokens }) => inputTokens)))}</td>
            <td class="number">{numberOf(sumOf(requests.map(({ outputTokens }) => outputTokens)))}</td>
            <td class="number">{seconds(sumOf(requests.map(({ ms }) => ms)))}</td>
            <td class="number">{moneyOf(requests) || '–'}</td>
          </tr>
        </tfoot>
      </table>
      {cached > 0 && <p class="small soft">{filled(texts.cached, { n: numberOf(cached) })}</p>}
    </div>
  );
}

function Plain({ text }: { text: string }) {
  return (
    <pre class="wraps">
      <PlainText text={text} />
    </pre>
  );
}

function inTokens(tokens: number, words: string): string {
  return filled(words, { n: numberOf(tokens) });
}

function seconds(ms: number): string {
  return new Intl.NumberFormat(languageOfPage(), {
    style: 'unit',
    unit: 'second',
    unitDisplay: 'short',
    maximumFractionDigits: 1,
  }).format(ms / 1000);
}

/** Prices name no currency. */
function money(value: number): string {
  return new Intl.NumberFormat(languageOfPage(), { maximumSignificantDigits: 3 }).format(value);
}

/** Empty if no price is known. */
function moneyOf(requests: TurnDetails['requests']): string {
  const known = requests.flatMap(({ cost }) => (cost === null ? [] : [cost]));
  return known.length === 0 ? '' : money(known.reduce((sum, each) => sum + each, 0));
}
