// What a board of ours may be: the types that Grafana publishes for boards, panels, units and queries of Prometheus, put
// together for the kinds of panels that it has.

import type * as dashboard from '@grafana/grafana-foundation-sdk/dashboard';
import type { Dataquery } from '@grafana/grafana-foundation-sdk/prometheus';
import type * as stat from '@grafana/grafana-foundation-sdk/stat';
import type * as timeseries from '@grafana/grafana-foundation-sdk/timeseries';
import type * as units from '@grafana/grafana-foundation-sdk/units';

/** A type as JSON has it: the values of enums in the place of their names. */
type Json<T> = 0 extends T & 1
  ? T
  : T extends string
    ? `${T}`
    : T extends number
      ? `${T}` extends `${infer N extends number}`
        ? N
        : never
      : T extends (infer Item)[]
        ? Json<Item>[]
        : T extends object
          ? { [Member in keyof T]: Json<T[Member]> }
          : T;

type Unit = (typeof units)[keyof typeof units];

interface FieldConfig<Custom> extends Omit<dashboard.FieldConfig, 'unit' | 'custom'> {
  unit: Unit;
  custom?: Custom;
}

/** One kind of panel, whose options Grafana types by its kind. */
interface PanelOf<Type, Options, Custom> extends Omit<dashboard.Panel, 'type' | 'targets' | 'options' | 'fieldConfig'> {
  type: Type;
  targets: Omit<Dataquery, '_implementsDataqueryVariant'>[];
  options: Options;
  fieldConfig: Omit<dashboard.FieldConfigSource, 'defaults'> & { defaults: FieldConfig<Custom> };
}

interface RowPanel extends Omit<dashboard.RowPanel, 'type'> {
  type: 'row';
}

type Panel = PanelOf<'stat', stat.Options, never> | PanelOf<'timeseries', timeseries.Options, timeseries.FieldConfig> | RowPanel;

export type Board = Json<Omit<dashboard.Dashboard, 'panels'> & { panels: Panel[] }>;
