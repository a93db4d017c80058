#pragma once
// The few calls of ncurses (with wide characters) that the notes' view needs. Much of ncurses is macros and functions with
// any number of arguments, which Swift does not import.
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

/// Keys that stand for the beginning and the end of what is pasted.
static const int thicket_key_paste_begin = KEY_MAX + 1;
static const int thicket_key_paste_end = KEY_MAX + 2;

/// Has the terminal put those two around what is pasted (xterm's mode 2004). One that does not know how ignores it.
static inline void thicket_screen_mark_pastes(int marks) {
    fputs(marks ? "\033[?2004h" : "\033[?2004l", stdout);
    fflush(stdout);
}

/// The screen as this program has it, or NULL when the terminal is none that can be drawn on. Blocks no signal but its own.
static inline SCREEN *thicket_screen_begin(void) {
    // Texts are UTF-8 whatever the user's language: without a locale that says so, letters would come out as bytes.
    if (setlocale(LC_CTYPE, "") == NULL || MB_CUR_MAX < 4) setlocale(LC_CTYPE, "C.UTF-8");
    SCREEN *screen = newterm(NULL, stdout, stdin);
    if (screen == NULL) return NULL;
    set_term(screen);
    // Ctrl-C and Ctrl-Z come as keys.
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

// The C library has it, and declares it for programs that ask for POSIX extensions only.
extern int wcwidth(wchar_t letter);

/// Cells that a letter takes on the terminal; -1 for what cannot be shown.
static inline int thicket_screen_cells(unsigned int letter) { return wcwidth((wchar_t)letter); }

static inline void thicket_screen_end(SCREEN *screen) {
    thicket_screen_mark_pastes(FALSE);
    endwin();
    delscreen(screen);
}

enum thicket_key_kind { thicket_key_none, thicket_key_letter, thicket_key_named };

/// Waits for a key, at most so many milliseconds.
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

/// Puts a row of text: what stood there is gone. `style`: 0 plain, 1 reversed, 2 bold, 3 dim.
static inline void thicket_screen_row(int row, const wchar_t *text, int count, int style) {
    attr_t attributes = style == 1 ? A_REVERSE : style == 2 ? A_BOLD : style == 3 ? A_DIM : A_NORMAL;
    wmove(stdscr, row, 0);
    wattrset(stdscr, (int)attributes);
    waddnwstr(stdscr, text, count);
    wattrset(stdscr, A_NORMAL);
    int y = getcury(stdscr);
    // A row that is full to the last column has taken the cursor to the next one.
    if (y == row) wclrtoeol(stdscr);
}

/// Shows what was put, with the cursor at a place; a negative row hides it.
static inline void thicket_screen_show(int row, int column) {
    curs_set(row < 0 ? 0 : 1);
    if (row >= 0) wmove(stdscr, row, column);
    wrefresh(stdscr);
}

static inline void thicket_screen_clear(void) { werase(stdscr); }

/// Overwrites what ncurses keeps of the screen: first every place with a letter, then with nothing, each shown.
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

/// Gives the terminal back for a while; the next thing shown takes it again.
static inline void thicket_screen_pause(void) {
    thicket_screen_mark_pastes(FALSE);
    endwin();
    clearok(curscr, TRUE);
}
