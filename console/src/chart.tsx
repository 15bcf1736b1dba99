// A chart of live series over time.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

export interface Series {
  name: string;
  /** A custom property of the style sheet. */
  color: string;
}

const HEIGHT = 190;

export function Chart(props: { label: string; series: Series[]; data: (number | null)[][] }) {
  const element = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  useEffect(() => {
    const host = element.current;
    if (!host) return;
    const style = getComputedStyle(document.documentElement);
    const color = (name: string) => style.getPropertyValue(name).trim();
    const axis = { stroke: color("--muted"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false } };
    const made = new uPlot(
      {
        width: host.clientWidth,
        height: HEIGHT,
        cursor: { y: false },
        legend: { live: true },
        axes: [
          { ...axis, values: "{HH}:{mm}:{ss}", space: 90 },
          { ...axis, size: 52 },
        ],
        scales: { y: { range: (_plot, _least, most) => [0, Math.max(most * 1.1, 1)] } },
        series: [
          { label: "Time", value: "{HH}:{mm}:{ss}" },
          ...props.series.map((series) => ({
            label: series.name,
            stroke: color(series.color),
            width: 1.6,
            points: { show: false },
            value: (_plot: uPlot, value: number | null) => (value === null ? "–" : value.toFixed(1)),
          })),
        ],
      },
      props.data as uPlot.AlignedData,
      host,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: host.clientWidth, height: HEIGHT }));
    observer.observe(host);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, []);
  useEffect(() => plot.current?.setData(props.data as uPlot.AlignedData), [props.data]);
  return <div ref={element} class="chart" role="img" aria-label={props.label} />;
}
