//! What is on the screen, and what keys do.

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, List, ListState, Paragraph, Row, Table, TableState, Wrap};
use tripoint::events;

use crate::commands::top::fitted::{Fitted, SPACING};
use crate::commands::top::live::Live;
use crate::commands::top::switches::Switches;
use crate::grid::Grid;
use crate::summary::Summary;
use crate::tables;
use crate::words::counted;

/// The pages, by the keys 1 to 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    Contract,
    Memory,
    Points,
    Sites,
    Events,
    Switches,
}

impl Page {
    const ALL: [Self; 6] =
        [Self::Contract, Self::Memory, Self::Points, Self::Sites, Self::Events, Self::Switches];

    /// Its tables, the one that is sorted and scrolled first.
    fn grids(self, summary: &Summary, live: &Live<'_>) -> Vec<Grid> {
        match self {
            Self::Contract => vec![tables::violations(summary), tables::tallies(summary)],
            Self::Memory => vec![tables::pools(summary), tables::arenas(summary)],
            Self::Points => vec![live.fills(), tables::points(summary)],
            Self::Sites => vec![tables::sites(summary), tables::samples(summary)],
            Self::Events => vec![tables::events(summary), tables::threads(summary)],
            Self::Switches => Vec::new(),
        }
    }
}

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    GoOn,
    End,
}

/// What was chosen by keys.
pub(super) struct Screen {
    page: usize,
    /// The column that the first table is sorted by, counted over all columns; `None` for the order that it has.
    column: Option<usize>,
    reversed: bool,
    row: usize,
    switches: Switches,
    /// Why the last switch was refused.
    refused: Option<String>,
}

impl Screen {
    pub(super) fn new(switches: Switches) -> Self {
        Self { page: 0, column: None, reversed: false, row: 0, switches, refused: None }
    }

    fn turn_to(&mut self, page: usize) {
        (self.page, self.column, self.reversed, self.row) = (page % Page::ALL.len(), None, false, 0);
    }

    pub(super) fn press(&mut self, key: KeyEvent) -> After {
        self.refused = None;
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return After::End,
            KeyCode::Char('q') | KeyCode::Esc => return After::End,
            KeyCode::Char(digit @ '1'..='6') => self.turn_to(digit as usize - '1' as usize),
            KeyCode::Tab => self.turn_to(self.page + 1),
            KeyCode::BackTab => self.turn_to(self.page + Page::ALL.len() - 1),
            KeyCode::Char('s') => self.column = Some(self.column.map_or(0, |column| column + 1)),
            KeyCode::Char('r') => self.reversed = !self.reversed,
            KeyCode::Down => self.row = self.row.saturating_add(1),
            KeyCode::Up => self.row = self.row.saturating_sub(1),
            KeyCode::Char(' ') if Page::ALL[self.page] == Page::Switches => {
                self.refused = self.switches.turn(self.row).err().map(|error| error.to_string());
            }
            KeyCode::Char(sign @ ('+' | '-')) if Page::ALL[self.page] == Page::Switches => {
                self.refused = self.switches.sample(sign == '+').err().map(|error| error.to_string());
            }
            _ => {}
        }
        After::GoOn
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>, live: &Live<'_>, faults: &[String]) {
        let Some(summary) = live.known() else { return };
        let [head, pages, body, foot] = Layout::vertical([
            Constraint::Length(4),
            Constraint::Length(1),
            Constraint::Min(0),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(Paragraph::new(heading(summary, faults)).wrap(Wrap { trim: true }), head);
        frame.render_widget(Line::from(self.titles(usize::from(pages.width))), pages);
        if Page::ALL[self.page] == Page::Switches {
            self.draw_switches(frame, body);
        } else {
            self.draw_grids(frame, body, Page::ALL[self.page].grids(summary, live));
        }
        let keys = "q end  Tab page  s sort  r reverse  arrows scroll  Space + - switch";
        frame.render_widget(self.refused.as_deref().unwrap_or(keys), foot);
    }

    /// The names of the pages; without room for all, of the others only the keys.
    fn titles(&self, room: usize) -> Vec<Span<'static>> {
        let name = |(index, page): (usize, &Page)| format!(" {} {page:?} ", index + 1);
        let has_room = Page::ALL.iter().enumerate().map(|page| name(page).len()).sum::<usize>() <= room;
        let title = |(index, page): (usize, &Page)| match index == self.page {
            true => Span::styled(name((index, page)), Modifier::REVERSED),
            false if has_room => Span::raw(name((index, page))),
            false => Span::raw(format!(" {} ", index + 1)),
        };
        Page::ALL.iter().enumerate().map(title).collect()
    }

    fn draw_switches(&mut self, frame: &mut Frame<'_>, body: Rect) {
        self.row = self.row.min(self.switches.count().saturating_sub(1));
        let list = List::new(self.switches.lines()).highlight_style(Modifier::REVERSED);
        let chosen = (self.switches.count() > 0).then_some(self.row);
        frame.render_stateful_widget(list, body, &mut ListState::default().with_selected(chosen));
    }

    fn draw_grids(&mut self, frame: &mut Frame<'_>, body: Rect, mut grids: Vec<Grid>) {
        if let Some(first) = grids.first_mut() {
            self.row = self.row.min(first.rows.len().saturating_sub(1));
            if let Some(column) = self.column {
                first.sort(column % first.columns.len(), self.reversed);
            } else if self.reversed {
                first.rows.reverse();
            }
        }
        // The second table takes what it needs, up to half of the height.
        let needs = |grid: &Grid| u16::try_from(grid.rows.len() + 3).unwrap_or(u16::MAX);
        let second = grids.get(1).map_or(0, needs).min(body.height / 2);
        let areas: [Rect; 2] = Layout::vertical([Constraint::Min(0), Constraint::Length(second)]).areas(body);
        for (index, (grid, area)) in grids.iter().zip(areas).enumerate() {
            let chosen = (index == 0 && !grid.rows.is_empty()).then_some(self.row);
            let sorted = if index == 0 { self.column } else { None };
            let mut state = TableState::default().with_selected(chosen);
            let [title, rest] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
            frame.render_widget(Line::styled(grid.title, Modifier::BOLD), title);
            frame.render_stateful_widget(table(grid, sorted, usize::from(rest.width)), rest, &mut state);
        }
    }
}

/// The worst that is known of the process first, so that it is there in the narrowest terminal.
fn heading(summary: &Summary, faults: &[String]) -> Vec<Line<'static>> {
    let alarm = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
    let mut breaches = summary.violations.iter().filter(|row| row.is_real());
    let last = match (breaches.next(), faults.first(), tables::losses(summary).first()) {
        (Some(worst), ..) => {
            // An alarm is raised for a violation that has a record of its own.
            let violations = summary.violations.iter().filter(|row| row.kind == events::Event::VIOLATION);
            let count: u64 = violations.map(|violation| violation.count).sum();
            let count = counted(count, "violation");
            let text = format!("{count}: {} of {} in {}", worst.class, worst.name, worst.site);
            Line::styled(text, alarm)
        }
        (None, Some(fault), _) => Line::styled(fault.clone(), alarm),
        (None, None, Some(loss)) => Line::raw(loss.clone()),
        (None, None, None) => Line::raw("no violation, nothing lost"),
    };
    // (design/cli.md `.top.ended`)
    let head = Line::styled(tables::head(summary), if summary.is_gone { alarm } else { Style::new() });
    vec![last, head, Line::raw(tables::part(summary))]
}

/// A table of as much as there is room for.
pub(super) fn table(grid: &Grid, sorted: Option<usize>, room: usize) -> Table<'static> {
    let Fitted { columns, rows } = Fitted::new(grid, room);
    let cell = |column: usize, text: String| {
        let line = Line::raw(text);
        Cell::from(if column < grid.texts { line } else { line.right_aligned() })
    };
    let titles = columns.iter().map(|&(column, _)| {
        let is_sorted = sorted.is_some_and(|sorted| sorted % grid.columns.len() == column);
        let modifier = if is_sorted { Modifier::REVERSED } else { Modifier::UNDERLINED };
        cell(column, grid.columns[column].to_owned()).style(modifier)
    });
    let constraints =
        columns.iter().map(|&(_, width)| Constraint::Length(u16::try_from(width).unwrap_or(u16::MAX)));
    let rows = rows.into_iter().map(|row| {
        let shown = row.into_iter().enumerate().take(columns.len());
        Row::new(shown.map(|(column, text)| cell(column, text)).collect::<Vec<_>>())
    });
    Table::new(rows, constraints)
        .header(Row::new(titles))
        .column_spacing(SPACING as u16)
        .row_highlight_style(Modifier::REVERSED)
}
