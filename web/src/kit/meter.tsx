/** How much of a bound is used: a bar with its number beside it. */
export function Meter({
  label,
  value,
  most,
  words,
}: {
  label: string;
  value: number;
  most: number;
  /** The number for people: `1,200 of 4,000 tokens`. */
  words: string;
}) {
  // Beyond the bound, the bar is as long as the value, and shows where the bound is.
  const part = most > 0 ? Math.min(value / most, most / value) : 0;
  return (
    <div class={`meter ${value > most ? 'over' : ''}`}>
      <meter class="hidden" aria-label={label} aria-valuetext={words} min={0} max={most} value={value} />
      <div aria-hidden="true">
        <i style={{ width: `${part * 100}%` }} />
      </div>
      <span class="soft">{words}</span>
    </div>
  );
}
