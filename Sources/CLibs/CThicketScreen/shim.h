#pragma once
// The calls of ncurses (with wide characters) for the view of the notes. Much of ncurses is macros and variadic
// functions, which Swift does not import.
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

/// Key codes for the beginning and the end of pasted text.
static const int thicket_key_paste_begin = KEY_MAX + 1;
static const int thicket_key_paste_end = KEY_MAX + 2;

/// Asks the terminal to mark pasted text with these two keys (xterm's mode 2004). Other terminals ignore it.
static inline void thicket_screen_mark_pastes(int marks) {
    fputs(marks ? "\033[?2004h" : "\033[?2004l", stdout);
    fflush(stdout);
}

/// Sets the terminal up and returns the screen, or NULL for a terminal that cannot be drawn on. Blocks no signals but
/// its own.
static inline SCREEN *thicket_screen_begin(void) {
    // Text is UTF-8 in every locale of the user; in a locale with another encoding, letters would be shown as bytes.
    if (setlocale(LC_CTYPE, "") == NULL || MB_CUR_MAX < 4) setlocale(LC_CTYPE, "C.UTF-8");
    SCREEN *screen = newterm(NULL, stdout, stdin);
    if (screen == NULL) return NULL;
    set_term(screen);
    // Ctrl-C and Ctrl-Z are read as keys.
    raw();
    noecho();
    nonl();
    intrflush(stdscr, FALSE);
    keypad(stdscr, TRUE);
    set_escdelay(50);
    define_key("\033[200~", thicket_key_paste_begin);
    define_key("\033[201~", thicket_key_paste_end);
    thicket_screen_mark_pastes(TRUE);
    return screen;
}

// The C library has it, but declares it only for programs that ask for POSIX extensions.
extern int wcwidth(wchar_t letter);

/// Cells that a character takes on the terminal; -1 for one that cannot be shown.
static inline int thicket_screen_cells(unsigned int letter) { return wcwidth((wchar_t)letter); }

static inline void thicket_screen_end(SCREEN *screen) {
    thicket_screen_mark_pastes(FALSE);
    endwin();
    delscreen(screen);
}

enum thicket_key_kind { thicket_key_none, thicket_key_letter, thicket_key_named };

/// Waits for a key, at most this many milliseconds.
static inline enum thicket_key_kind thicket_screen_key(int milliseconds, unsigned int *key) {
    wint_t code = 0;
    wtimeout(stdscr, milliseconds);
    int kind = wget_wch(stdscr, &code);
    *key = (unsigned int)code;
    if (kind == KEY_CODE_YES) return thicket_key_named;
    if (kind == OK) return thicket_key_letter;
    return thicket_key_none;
}

static inline int thicket_screen_rows(void) { return getmaxy(stdscr); }
static inline int thicket_screen_columns(void) { return getmaxx(stdscr); }

/// Replaces a row of the screen by text. `style`: 0 plain, 1 reversed, 2 bold, 3 dim.
static inline void thicket_screen_row(int row, const wchar_t *text, int count, int style) {
    attr_t attributes = style == 1 ? A_REVERSE : style == 2 ? A_BOLD : style == 3 ? A_DIM : A_NORMAL;
    wmove(stdscr, row, 0);
    wattrset(stdscr, (int)attributes);
    waddnwstr(stdscr, text, count);
    wattrset(stdscr, A_NORMAL);
    int y = getcury(stdscr);
    // A text that fills the row has moved the cursor to the next row.
    if (y == row) wclrtoeol(stdscr);
}

/// Shows the rows that were set, with the cursor at a place; a negative row hides the cursor.
static inline void thicket_screen_show(int row, int column) {
    curs_set(row < 0 ? 0 : 1);
    if (row >= 0) wmove(stdscr, row, column);
    wrefresh(stdscr);
}

static inline void thicket_screen_clear(void) { werase(stdscr); }

/// Overwrites ncurses' copies of the screen: shows first a character at every place, then an empty screen.
static inline void thicket_screen_wipe(void) {
    for (int round = 0; round < 2; round++) {
        wattrset(stdscr, A_NORMAL);
        for (int row = 0; row < getmaxy(stdscr); row++) {
            wmove(stdscr, row, 0);
            for (int column = 0; column < getmaxx(stdscr); column++) waddch(stdscr, round == 0 ? '.' : ' ');
        }
        wrefresh(stdscr);
    }
    clearok(curscr, TRUE);
    werase(stdscr);
    wrefresh(stdscr);
}

/// Returns the terminal to the shell for a while; the next `thicket_screen_show` takes it back.
static inline void thicket_screen_pause(void) {
    thicket_screen_mark_pastes(FALSE);
    endwin();
    clearok(curscr, TRUE);
}
