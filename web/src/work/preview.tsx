/** One artifact to look at, and to take along. Nothing of it is ever a document of this page's origin. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ArtifactItem } from '../../../src/board/protocol.ts';
import { read, sentenceOf } from '../api.ts';
import { useTexts } from '../app.ts';
import { CodeBlock } from '../kit/code.tsx';
import { Fault } from '../kit/fault.tsx';
import { Icon } from '../kit/icons.tsx';
import { Markdown } from '../kit/markdown.tsx';
import { languageOfPage, sizeInWords, timeInWords } from '../kit/words.ts';
import { addressOf } from '../place.ts';
import { filled } from '../texts/texts.ts';
import { beginningIn, previewOf, type TextBeginning } from './preview-kind.ts';

const MOST_TEXT_BYTES = 300_000;

/** `at`: when the list says that it was last written. */
export function Preview({ task, id, at }: { task: string; id: string; at: number | null }) {
  const { work, kit } = useTexts();
  const region = useRef<HTMLElement>(null);
  const [item, setItem] = useState<ArtifactItem | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  useEffect(() => region.current?.focus({ preventScroll: true }), []);
  useEffect(() => {
    const over = new AbortController();
    read<ArtifactItem>(`api/board/artifacts/${[task, id].map(encodeURIComponent).join('/')}`, over.signal)
      .then(setItem)
      .catch((error: unknown) => {
        if (over.signal.aborted) return;
        setFault(sentenceOf(error));
      });
    return () => over.abort();
  }, [task, id, at]);
  return (
    <section ref={region} class="second stack" aria-label={kit.preview} tabIndex={-1}>
      <div class="back">
        <a href={addressOf('work', ['artifacts'])}>{work.allArtifacts}</a>
      </div>
      <Fault says={fault} />
      {item !== null && (
        <>
          <h2>{item.title ?? item.name}</h2>
          <div class="row">
            <p class="small soft grow">
              {item.name} · {item.type} · {sizeInWords(item.bytes, languageOfPage())} ·{' '}
              {timeInWords(item.at, languageOfPage())}
            </p>
            <a class="button" href={item.address} download={item.name}>
              <Icon name="down" />
              {work.download}
            </a>
          </div>
          <Content key={`${item.at}`} item={item} />
        </>
      )}
    </section>
  );
}

function Content({ item }: { item: ArtifactItem }) {
  const { work } = useTexts();
  const [isBroken, setBroken] = useState(false);
  const shown = previewOf(item);
  if (shown.kind === 'none') {
    return <p class="note">{shown.why === 'large' ? work.tooLarge : work.notShown}</p>;
  }
  if (shown.kind === 'picture') {
    if (isBroken) return <p class="note">{work.notShown}</p>;
    return (
      <img class="whole" src={item.address} alt={item.title ?? item.name} onError={() => setBroken(true)} />
    );
  }
  if (shown.kind === 'pdf') return <Pdf item={item} />;
  const language = shown.kind === 'code' ? shown.language : null;
  return (
    <Text item={item}>
      {(text) =>
        language === null ? (
          <div class="card">
            <Markdown text={text} level={2} />
          </div>
        ) : (
          <CodeBlock code={text} language={language} />
        )
      }
    </Text>
  );
}

function Text({ item, children }: { item: ArtifactItem; children: (text: string) => ComponentChildren }) {
  const { work } = useTexts();
  const [found, setFound] = useState<TextBeginning | 'not text' | 'failed' | null>(null);
  useEffect(() => {
    const over = new AbortController();
    beginningOf(item.address, over)
      .then((beginning) => setFound(beginning ?? 'not text'))
      .catch(() => over.signal.aborted || setFound('failed'));
    return () => over.abort();
  }, [item.address]);
  if (found === null) return null;
  if (found === 'failed') return <Fault says="" />;
  if (found === 'not text') return <p class="note">{work.notShown}</p>;
  return (
    <>
      {children(found.text)}
      {found.isCut && (
        <p class="note">
          {filled(work.onlyBeginning, { size: sizeInWords(MOST_TEXT_BYTES, languageOfPage()) })}
        </p>
      )}
    </>
  );
}

/** The rest is not fetched. Throws if the gateway does not answer. */
async function beginningOf(address: string, over: AbortController): Promise<TextBeginning | null> {
  const answer = await fetch(address, { redirect: 'error', signal: over.signal });
  if (!answer.ok || answer.body === null) throw new Error(`the artifact was answered with ${answer.status}`);
  const bytes = new Uint8Array(MOST_TEXT_BYTES);
  let length = 0;
  const reader = answer.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return beginningIn(bytes.subarray(0, length), false);
    const fits = value.subarray(0, MOST_TEXT_BYTES - length);
    bytes.set(fits, length);
    length += fits.length;
    if (fits.length < value.length) {
      await reader.cancel();
      return beginningIn(bytes, true);
    }
  }
}

/** Shown by the browser, from memory and as nothing but a PDF, whatever the gateway or the file says of itself. */
function Pdf({ item }: { item: ArtifactItem }) {
  const { work } = useTexts();
  const [address, setAddress] = useState<string | null>(null);
  const [isFailed, setFailed] = useState(false);
  const isAble = navigator.pdfViewerEnabled;
  useEffect(() => {
    if (!isAble) return;
    const over = new AbortController();
    let made: string | null = null;
    fetch(item.address, { redirect: 'error', signal: over.signal })
      .then(async (answer) => {
        if (!answer.ok) throw new Error(`the artifact was answered with ${answer.status}`);
        made = URL.createObjectURL(new Blob([await answer.arrayBuffer()], { type: 'application/pdf' }));
        setAddress(made);
      })
      .catch(() => over.signal.aborted || setFailed(true));
    return () => {
      over.abort();
      if (made !== null) URL.revokeObjectURL(made);
    };
  }, [item.address, isAble]);
  if (!isAble) return <p class="note">{work.noPdf}</p>;
  if (isFailed) return <Fault says="" />;
  return address === null ? null : <iframe class="pdf" src={address} title={item.title ?? item.name} />;
}
