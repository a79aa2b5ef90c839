/** Numbers over days as bars, with the same numbers in a table beside them. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { useTexts } from '../app.ts';
import { languageOfPage } from './words.ts';

export interface PlotPoint {
  /** `27 Nov`. */
  label: string;
  value: number;
}

const HEIGHT = 200;
const LEFT = 48;
const BOTTOM = 22;
const TOP = 8;
/** Closer labels would run into each other. */
const LABEL = 72;

interface PlotProps {
  title: string;
  unit: string;
  points: readonly PlotPoint[];
  /** Where the numbers matter as much as their course. */
  isTableOpen?: boolean;
}

export function Plot({ title, unit, points, isTableOpen = false }: PlotProps) {
  const { kit } = useTexts();
  const number = new Intl.NumberFormat(languageOfPage(), { maximumFractionDigits: 2 });
  const short = new Intl.NumberFormat(languageOfPage(), { notation: 'compact' });
  const top = niceAbove(Math.max(0, ...points.map(({ value }) => value)));
  const [svg, width] = useWidth();
  const step = (width - LEFT) / Math.max(1, points.length);
  const every = Math.ceil((points.length * LABEL) / (width - LEFT));
  const heightOf = (value: number) => (value / top) * (HEIGHT - BOTTOM - TOP);
  return (
    <figure class="plot">
      <svg ref={svg} role="img" aria-label={title} viewBox={`0 0 ${width} ${HEIGHT}`}>
        {[0, 0.5, 1].map((part) => {
          const y = HEIGHT - BOTTOM - heightOf(top * part);
          return (
            <g key={part}>
              <line class="grid" x1={LEFT} x2={width} y1={y} y2={y} />
              <text class="axis" x={LEFT - 6} y={y + 4} text-anchor="end">
                {short.format(top * part)}
              </text>
            </g>
          );
        })}
        {points.map(({ label, value }, n) => (
          <g key={label}>
            <rect
              x={LEFT + n * step + step * 0.15}
              y={HEIGHT - BOTTOM - heightOf(value)}
              width={step * 0.7}
              height={heightOf(value)}
              rx={Math.min(3, step * 0.2)}
              fill="currentColor"
            >
              <title>{`${label}: ${number.format(value)} ${unit}`}</title>
            </rect>
            {n % every === 0 && (
              <text class="axis" x={LEFT + (n + 0.5) * step} y={HEIGHT - 5} text-anchor="middle">
                {label}
              </text>
            )}
          </g>
        ))}
      </svg>
      <details open={isTableOpen}>
        <summary class="small soft">{kit.asTable}</summary>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also for those without a mouse. */}
        <div class="scrolls" tabIndex={0}>
          <table>
            <caption class="hidden">{title}</caption>
            <tbody>
              {/* The newest first. */}
              {points.toReversed().map(({ label, value }) => (
                <tr key={label}>
                  <th scope="row">{label}</th>
                  <td class="number">
                    {number.format(value)} {unit}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}

/** As wide as there is room, so that its letters are as large on every screen. */
function useWidth() {
  const svg = useRef<SVGSVGElement>(null);
  const [width, setWidth] = useState(640);
  useEffect(() => {
    if (svg.current === null) return;
    const observer = new ResizeObserver(([entry]) => {
      if (entry && entry.contentRect.width > 0) setWidth(Math.max(2 * LEFT, entry.contentRect.width));
    });
    observer.observe(svg.current);
    return () => observer.disconnect();
  }, []);
  return [svg, width] as const;
}

/** The next of 1, 2, 5, 10, 20, … */
export function niceAbove(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5].find((each) => each * power >= value) ?? 10) * power;
}
