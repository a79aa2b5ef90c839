/** The plan or the memory of the workspace: the text, its steps as boxes of the same text, and how it reads. */
import { Component } from 'preact';
import { useEffect, useId, useMemo, useState } from 'preact/hooks';
import { useTexts } from '../app.ts';
import { Conflict } from '../kit/conflict.tsx';
import { Fault } from '../kit/fault.tsx';
import { Markdown } from '../kit/markdown.tsx';
import { onChange } from '../live.ts';
import { filled } from '../texts/texts.ts';
import { type EditedFile, fileAt } from './file.ts';
import { asTyped, type PlanHeading, planIn, type Step, ticked } from './plan.ts';

/** More are shown when they are asked for. */
const MOST_STEPS = 300;

export function WorkspaceFile({ which }: { which: 'plan' | 'memory' }) {
  const { work } = useTexts();
  const id = useId();
  const file = fileAt(`api/workspace/${which}`);
  const name = which === 'plan' ? 'task.md' : 'MEMORY.md';
  const text = file.text.value;
  useEffect(() => {
    void file.read();
    return onChange('work', file.read);
  }, [file]);
  if (text === null) {
    return <Fault says={file.fault.value} />;
  }
  return (
    <div class="beside">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void file.save();
        }}
        onKeyDown={(event) => {
          if (event.key !== 's' || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          void file.save();
        }}
      >
        <label for={id}>{name}</label>
        <textarea
          id={id}
          class="file-text"
          spellcheck={false}
          value={asTyped(text)}
          placeholder={which === 'plan' ? work.planExample : work.memoryExample}
          onInput={({ currentTarget }) => file.type(currentTarget.value)}
        />
        <Saving file={file} />
      </form>
      <div class="stack">
        {which === 'plan' && <Steps file={file} text={text} />}
        <Preview text={text} isOpen={which === 'memory'} />
      </div>
      {file.conflict.value && (
        <Conflict
          key={file.conflict.value.etag}
          mine={asTyped(text)}
          theirs={asTyped(file.conflict.value.content)}
          keepMine={file.keepMine}
          takeTheirs={file.takeTheirs}
          cancel={file.cancel}
        />
      )}
    </div>
  );
}

function Saving({ file }: { file: EditedFile }) {
  const { work } = useTexts();
  return (
    <>
      <div class="row">
        <button type="submit" class="primary">
          {work.save}
        </button>
        <p role="status" class="small soft">
          {file.outcome.value === 'saved' ? work.saved : file.isChanged.value ? work.unsaved : ''}
        </p>
      </div>
      <Fault says={file.fault.value} />
    </>
  );
}

function Steps({ file, text }: { file: EditedFile; text: string }) {
  const { work } = useTexts();
  const id = useId();
  const [most, setMost] = useState(MOST_STEPS);
  const plan = useMemo(() => planIn(text), [text]);
  const steps = plan.filter((part): part is Step => part.kind === 'step');
  const done = steps.filter(({ isDone }) => isDone).length;
  const [tick] = useState(() => (step: Step) => {
    const now = file.text.peek();
    if (now !== null) file.change(ticked(now, step));
  });
  return (
    <section class="stack" aria-labelledby={id}>
      <div class="row">
        <h2 id={id}>{work.steps}</h2>
        {steps.length > 0 && <p class="small soft">{filled(work.stepsDone, { done, all: steps.length })}</p>}
      </div>
      {steps.length === 0 ? (
        <p class="soft small">{work.noSteps}</p>
      ) : (
        <div class="steps">
          {plan.slice(0, most).map((part, n) => (
            <Part key={n} part={part} tick={tick} unnamed={work.unnamedStep} />
          ))}
        </div>
      )}
      {plan.length > most && (
        <div>
          <button type="button" class="quiet" onClick={() => setMost(Number.POSITIVE_INFINITY)}>
            {filled(work.allSteps, { n: steps.length })}
          </button>
        </div>
      )}
    </section>
  );
}

interface PartProps {
  part: Step | PlanHeading;
  tick: (step: Step) => void;
  /** The name of a box that has no words. */
  unnamed: string;
}

/** Drawn again only when it has changed: a plan may have thousands of them. */
class Part extends Component<PartProps> {
  override shouldComponentUpdate({ part: next }: PartProps) {
    const { part } = this.props;
    const isSame = part.at === next.at && part.text === next.text && part.kind === next.kind;
    return !isSame || (part.kind === 'step' && next.kind === 'step' && !isSameBox(part, next));
  }

  override render() {
    const { part, tick, unnamed } = this.props;
    if (part.kind === 'heading') return part.text === '' ? null : <h3>{part.text}</h3>;
    const { text, isDone, depth } = part;
    return (
      <label class={isDone ? 'done' : ''} style={{ '--depth': `${Math.min(depth, 6)}` }}>
        <input
          type="checkbox"
          checked={isDone}
          // The text says whether it is ticked.
          onChange={({ currentTarget }) => {
            currentTarget.checked = isDone;
            tick(part);
          }}
        />
        <span>{text || unnamed}</span>
      </label>
    );
  }
}

function isSameBox(one: Step, other: Step): boolean {
  return one.isDone === other.isDone && one.depth === other.depth;
}

function Preview({ text, isOpen: isOpenAtFirst }: { text: string; isOpen: boolean }) {
  const { kit, work } = useTexts();
  const [isOpen, setOpen] = useState(isOpenAtFirst);
  return (
    <details open={isOpenAtFirst} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{kit.preview}</summary>
      {isOpen && (
        <section class="card" aria-label={kit.preview}>
          {text.trim() === '' ? <p class="soft small">{work.empty}</p> : <Markdown text={text} />}
        </section>
      )}
    </details>
  );
}
