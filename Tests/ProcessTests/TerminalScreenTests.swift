import Testing
import ThicketBlocking
import ThicketProcesses

/// The terminal model of tests of full-screen programs: known sequences, known rows.
@Suite("The screen of a terminal", .blocking)
struct TerminalScreenTests {
    private static func screen(_ pieces: String..., rows: Int = 4, columns: Int = 12) -> TerminalScreen {
        var screen = TerminalScreen(rows: rows, columns: columns)
        for piece in pieces { screen.feed(piece.utf8) }
        return screen
    }

    @Test("a row that is drawn in pieces, with another row in between, is one row")
    func pieces() {
        var screen = TerminalScreen()
        let drawn =
            "\u{1B}[2d 1  old\u{1B}(B\u{1B}[m\u{1B}[K\r\u{1B}[3d 2  fresh"
            + "\u{1B}[24;4H\u{1B}(B\u{1B}[0;2med\u{1B}(B\u{1B}[m\u{1B}[K"
        screen.feed(drawn.utf8)
        #expect(screen.shows(" 1  old") && screen.shows(" 2  fresh") && !screen.shows("fruit"))
        screen.feed("\u{1B}[3;11Hfruit".utf8)
        #expect(screen.rows[1...2] == [" 1  old", " 2  fresh fruit"] && screen.rows[23] == "   ed")
        #expect(screen.shows("2  fresh fruit") && screen.unknown.isEmpty)
        // Overwritten text is not shown any more.
        screen.feed("\u{1B}[3;5Hstale\u{1B}[K".utf8)
        #expect(screen.shows("2  stale") && !screen.shows("fresh") && !screen.shows("fruit"))
    }

    @Test(
        "letters and movements of the cursor are drawn",
        arguments: [
            // Control characters.
            ("ab\r\ncd\u{8}\u{8}e\n\u{7}f", ["ab", "ed", " f", ""]), ("a\tb\tc", ["a       b  c", "", "", ""]),
            // Positions: rows and columns are counted from 1, and the cursor stays on the screen.
            ("\u{1B}[2;3Hx\u{1B}[Hy\u{1B}[;4Hz", ["y  z", "  x", "", ""]),
            ("\u{1B}[99;99Hx\u{1B}[3dy\u{1B}[2Gz", ["", "", " z         y", "           x"]),
            ("\u{1B}[3;5HA\u{1B}[2AB\u{1B}[BC\u{1B}[4Dd\u{1B}[3CE", ["     B", "   d  CE", "    A", ""]),
            ("ab\u{1B}[2Ec\u{1B}[Fd", ["ab", "d", "c", ""]),
            ("\u{1B}[2;9Hx\u{1B}[Zy\u{1B}[2Zz", ["", "z       y", "", ""]),
            ("ab\u{1B}7\u{1B}[4;4Hx\u{1B}8c", ["abc", "", "", "   x"]),
            ("\u{1B}[Ia\u{1B}[2`b", [" b      a", "", "", ""]),
            // The last letter repeated.
            ("\u{1B}[2;2H-\u{1B}[4bx", ["", " -----x", "", ""]),
        ] as [(String, [String])])
    func movements(_ drawn: String, _ rows: [String]) {
        let screen = Self.screen(drawn)
        #expect(screen.rows == rows && screen.unknown.isEmpty)
    }

    @Test("a full row wraps when the next letter comes, and not before")
    func wrapping() {
        #expect(Self.screen("abcdefghijkl").cursor == (0, 11))
        #expect(Self.screen("abcdefghijkl", "m").rows == ["abcdefghijkl", "m", "", ""])
        #expect(Self.screen("abcdefghijkl\r\nm").rows == ["abcdefghijkl", "m", "", ""])
        #expect(Self.screen("abcdefghijkl\u{8}m").rows == ["abcdefghijml", "", "", ""])
        #expect(Self.screen("abcdefghijkl\u{1B}[1;12HLm").rows == ["abcdefghijkL", "m", "", ""])
        #expect(Self.screen("\u{1B}[4;11Habc").rows == ["", "", "          ab", "c"])
        #expect(Self.screen("\u{1B}[?7labcdefghijklmn").rows == ["abcdefghijkn", "", "", ""])
        #expect(Self.screen("abcdefghijk日").rows == ["abcdefghijk", "日", "", ""])
    }

    @Test(
        "sequences erase and shift within a row",
        arguments: [
            ("\u{1B}[K", "abcd"), ("\u{1B}[1K", "     fghij"), ("\u{1B}[2K", ""), ("\u{1B}[3X", "abcd   hij"),
            ("\u{1B}[99X", "abcd"), ("\u{1B}[P", "abcdfghij"), ("\u{1B}[3P", "abcdhij"), ("\u{1B}[99P", "abcd"),
            ("\u{1B}[@", "abcd efghij"), ("\u{1B}[3@", "abcd   efghi"), ("\u{1B}[99@", "abcd"),
            ("\u{1B}[4hXY\u{1B}[4lZ", "abcdXYZfghij"),
        ])
    func row(_ drawn: String, _ row: String) {
        let screen = Self.screen("\r\nabcdefghij\u{1B}[2;5H", drawn)
        #expect(screen.rows == ["", row, "", ""] && screen.unknown.isEmpty)
    }

    @Test(
        "sequences erase and shift rows",
        arguments: [
            ("\u{1B}[J", ["one", "t", "", ""]), ("\u{1B}[1J", ["", "  o", "three", "four"]),
            ("\u{1B}[2J", ["", "", "", ""]),
            ("\u{1B}[3J", ["one", "two", "three", "four"]), ("\u{1B}[L", ["one", "", "two", "three"]),
            ("\u{1B}[2Lx", ["one", "x", "", "two"]), ("\u{1B}[99M", ["one", "", "", ""]),
            ("\u{1B}[M", ["one", "three", "four", ""]), ("\u{1B}[2S", ["three", "four", "", ""]),
            ("\u{1B}[T", ["", "one", "two", "three"]), ("\n\n\n", ["two", "three", "four", ""]),
            ("\u{1B}M\u{1B}Mx", [" x", "one", "two", "three"]), ("\u{1B}D\u{1B}Ex", ["one", "two", "three", "xour"]),
            // Between the second row and the third.
            ("\u{1B}[2;3r\u{1B}[3d\n", ["one", "three", "", "four"]),
            ("\u{1B}[2;3r\u{1B}[2d\u{1B}M", ["one", "", "two", "four"]),
            ("\u{1B}[2;3r\u{1B}[S", ["one", "three", "", "four"]),
            ("\u{1B}[2;3r\u{1B}[2d\u{1B}[L", ["one", "", "two", "four"]),
            ("\u{1B}[2;3r\u{1B}[L", ["one", "two", "three", "four"]),
            ("\u{1B}[2;3r\u{1B}[4d\nx", ["one", "two", "three", "xour"]),
            ("\u{1B}[2;3rx", ["xne", "two", "three", "four"]),
            ("\u{1B}[2;3r\u{1B}[2d\u{1B}[9Bx", ["one", "two", "xhree", "four"]),
            ("\u{1B}[2;3r\u{1B}[r\u{1B}[S", ["two", "three", "four", ""]),
        ] as [(String, [String])])
    func rows(_ drawn: String, _ rows: [String]) {
        let screen = Self.screen("one\r\ntwo\r\nthree\r\nfour\u{1B}[2;2H", drawn)
        #expect(screen.rows == rows && screen.unknown.isEmpty)
    }

    @Test("leaving the alternate screen restores the text before it; pastes are marked while the program wants it")
    func modes() {
        var screen = Self.screen("$ view")
        #expect(!screen.isAlternate && !screen.marksPastes)
        screen.feed("\u{1B}[?1049h\u{1B}[22;0;0t\u{1B}[1;4r\u{1B}(B\u{1B}[m\u{1B}[4l\u{1B}[?7h\u{1B}[?1h\u{1B}=".utf8)
        screen.feed("\u{1B}[?2004h\u{1B}[?12l\u{1B}[?25h\u{1B}[H\u{1B}[2Jnotes".utf8)
        #expect(screen.rows[0] == "notes" && screen.isAlternate && screen.marksPastes)
        screen.feed("\u{1B}[?2004l\u{1B}[4;1H\u{1B}[?12l\u{1B}[?25h\u{1B}[?1049l\u{1B}[23;0;0t\r\u{1B}[?1l\u{1B}>".utf8)
        #expect(screen.rows[0] == "$ view" && !screen.isAlternate && !screen.marksPastes && screen.unknown.isEmpty)
    }

    @Test("wide letters occupy two cells and are whole or erased, combining marks occupy none")
    func letters() {
        #expect(Self.screen("é日e\u{301}x\u{1B}[1;2H日").rows[0] == "é日e\u{301}x")
        #expect(Self.screen("é日本x").cursor == (0, 6))
        #expect(Self.screen("日本\u{1B}[1;2Hx").rows[0] == " x本")
        #expect(Self.screen("日本\u{1B}[1;3Hx").rows[0] == "日x")
        #expect(Self.screen("日本\u{1B}[1;2H\u{1B}[2P").rows[0] == "")
        #expect(Self.screen("日本\u{1B}[1;2H\u{1B}[@").rows[0] == "   本")
        #expect(Self.screen("日\u{301}\u{1B}[2;11H本\u{301}").rows[0...1] == ["日\u{301}", "          本\u{301}"])
    }

    @Test("a sequence and a letter may be cut anywhere between two pieces")
    func cut() {
        let bytes: [UInt8] = Array(
            "\u{1B}[?1049h\u{1B}[2;3Hé日\u{1B}(B\u{1B}[0;2mx\u{1B}[2d🌲\u{1B}[1K\u{1B}[22;0;0ty".utf8)
        var whole = TerminalScreen(rows: 4, columns: 12)
        whole.feed(bytes)
        #expect(whole.rows[1] == "        y" && whole.unknown.isEmpty)
        for place in bytes.indices {
            var screen = TerminalScreen(rows: 4, columns: 12)
            screen.feed(bytes[..<place])
            screen.feed(bytes[place...])
            #expect(
                screen.rows == whole.rows && screen.cursor == whole.cursor && screen.unknown.isEmpty, "cut at \(place)")
        }
    }

    @Test(
        "an unknown sequence is named, is not shown, and stops nothing",
        arguments: [
            ("\u{1B}[5n", #"\e[5n"#), ("\u{1B}[?1006h", #"\e[?1006h"#), ("\u{1B}[>c", #"\e[>c"#),
            ("\u{1B}(0", #"\e(0"#),
            ("\u{1B}]0;title\u{7}", #"\e]0;title\x07"#), ("\u{1B}]0;title\u{1B}\\", #"\e]0;title\e\"#),
            ("\u{1B}c", #"\ec"#),
            ("\u{1B}[!p", #"\e[!p"#), ("\u{E}", #"\x0e"#), ("\u{1B}[2\u{1B}[m", #"\e[2"#), ("\u{1B}[9;1r", #"\e[9;1r"#),
            ("\u{1B}[7J", #"\e[7J"#), ("\u{1B}[38:5:1m", #"\e[38:5:1m"#), ("\u{85}", #"\xc2\x85"#),
            ("\u{1B}[20h", #"\e[20h"#),
        ])
    func unknown(_ drawn: String, _ name: String) {
        let screen = Self.screen("a" + drawn + "b")
        #expect(screen.rows[0] == "ab" && screen.unknown == [name])
    }

    @Test("bytes that are not letters are named, too")
    func noLetters() {
        for bytes: [UInt8] in [[0xFF], [0x80], [0xC3], [0xE2, 0x82], [0xC0, 0x80], [0xED, 0xA0, 0x80]] {
            var screen = TerminalScreen(rows: 4, columns: 12)
            screen.feed(bytes + [0x61])
            #expect(screen.rows[0] == "a" && !screen.unknown.isEmpty, "\(bytes)")
        }
    }

    // MARK: - A program at a terminal

    private static func shell(_ script: String) throws -> PseudoTerminal {
        try PseudoTerminal(["/bin/sh", "-c", script])
    }

    @Test(
        "a wait ends when the screen shows the text, however it was drawn; earlier screens do not count"
    )
    func waits() throws {
        let terminal = try Self.shell(
            #"""
            stty -echo; printf 'first\033[3;11Hfruit\033[3;2H2  fresh'; read key
            printf '\033[H\033[2Jgone\033[?1049h'; read key; printf '\033[?1049l'; stty size
            """#)
        try terminal.wait(forShown: "2  fresh fruit")
        #expect(terminal.screen.shows("first") && !terminal.printed.contains("fresh fruit"))
        terminal.type("\n")
        try terminal.wait(until: "the screen is taken") { terminal.screen.isAlternate }
        #expect(!terminal.screen.shows("fruit") && terminal.everShowed("fresh fruit") && !terminal.everShowed("fruits"))
        let error = #expect(throws: ProcessError.self) { try terminal.wait(forPrinted: "first") }
        #expect(error?.description.contains("wait(forShown:)") == true, "bytes do not show what a program draws")
        terminal.type("\n")
        #expect(try terminal.finish() == 0)
        #expect(terminal.screen.rows[0] == "gone24 80", "the program was told the size of the screen")
    }

    @Test("a failed wait reports the screen; a wait on a screen with an unknown sequence fails and names it")
    func failures() throws {
        let ended = try Self.shell(#"printf 'one\r\n\n  three'"#)
        let error = #expect(throws: ProcessError.self) { try ended.wait(forShown: "two") }
        #expect(error?.description.contains("'two' is shown: cursor at 3;8, modes [7, 25]") == true)
        #expect(error?.description.hasSuffix("\n| one\n| \n|   three") == true, "\(error?.description ?? "")")
        let odd = try Self.shell(#"printf '\033[?1049h\033[5nhere'"#)
        #expect(try odd.finish() == 0)
        let unknown = #expect(throws: ProcessError.self) { try odd.wait(forShown: "here") }
        #expect(unknown?.description.contains(#"unknown: \e[5n"#) == true, "\(unknown?.description ?? "")")
        let silent = try Self.shell("true")
        #expect(throws: ProcessError.self) { try silent.wait(forShown: "anything") }
        #expect(throws: ProcessError.self) { try silent.wait(forPrinted: "anything") }
    }
}
