import Testing
import ThicketCrypto
import ThicketOnions

@testable import ThicketCLI

/// The notes' view without a terminal: keys in, frames out.
@Suite("The view of encrypted notes")
struct NotesScreenTests {
    /// Two cells for what East Asian fonts draw wide and for emoji, none for marks: enough of it for these tests.
    private static let width: TextLayout.Width = { scalar in
        switch scalar.value {
        case 0x0300...0x036F, 0x200D, 0xFE0F: 0
        case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xFF00...0xFF60, 0x1F300...0x1FAFF: 2
        default: 1
        }
    }

    private static func text(_ title: String, _ info: String = "") -> NoteText {
        NoteText(title: SecureBytes(copying: Array(title.utf8)), info: SecureBytes(copying: Array(info.utf8)))
    }

    private static func screen(_ rows: Int = 10, _ columns: Int = 40, asksName: Bool = false) -> NotesScreen {
        NotesScreen(
            rows: rows, columns: columns, asksName: asksName, lockAfter: 60_000, now: 0, width: width,
            standing: { "10 notes at most" })
    }

    /// A view that is logged in, with a list.
    private static func list(_ titles: [String] = ["one", "two", "three"], _ rows: Int = 10) -> NotesScreen {
        var screen = screen(rows)
        logIn(&screen)
        _ = screen.handle(
            .rows(titles.enumerated().map { .init(id: "id\($0.offset)", title: $0.element, isReadable: true) }), now: 0)
        return screen
    }

    private static func logIn(_ screen: inout NotesScreen, now: Int64 = 0) {
        type("x\n", into: &screen, now: now)
        _ = screen.handle(.loggedIn, now: now)
    }

    private static func shown(_ screen: NotesScreen) -> [String] { screen.frame().rows.map(\.text) }

    @discardableResult
    private static func type(_ text: String, into screen: inout NotesScreen, now: Int64 = 0) -> [NotesScreen.Action] {
        text.unicodeScalars.flatMap { screen.handle(.key($0 == "\n" ? .enter : .letter($0)), now: now) }
    }

    @Test("name and password are typed and never shown; the login uses what was typed")
    func login() throws {
        var screen = Self.screen(asksName: true)
        #expect(Self.shown(screen)[2].contains("User name"))
        #expect(Self.type("ann\n", into: &screen).isEmpty)
        #expect(Self.shown(screen)[2].contains("Password"))
        Self.type("secreX", into: &screen)
        _ = screen.handle(.key(.backspace), now: 0)
        #expect(!Self.shown(screen).joined().contains("secre") && !Self.shown(screen).joined().contains("ann"))
        let actions = Self.type("té日\n", into: &screen)
        guard case .login(let name, let password)? = actions.first, actions.count == 1 else {
            Issue.record("no login: \(actions.count)")
            return
        }
        #expect(name?.shownText == "ann" && password.shownText == "secreté日")
        // One login at a time; a refusal lets the user try again.
        #expect(Self.type("x\n", into: &screen).isEmpty)
        _ = screen.handle(.failed("the user name or the password is wrong"), now: 0)
        #expect(Self.shown(screen).last?.contains("wrong") == true)
        // What was typed was not shown, so it may be the name that was wrong.
        #expect(Self.shown(screen)[2].contains("User name"))
        #expect(Self.type("ann\n", into: &screen).isEmpty)
        #expect(Self.type("x\n", into: &screen).count == 1)
    }

    @Test("the list moves, opens, and keeps the selected note when another list comes")
    func listing() {
        var screen = Self.list()
        #expect(screen.frame().rows[1].style == .reversed && Self.shown(screen)[1].contains("one"))
        _ = screen.handle(.key(.down), now: 0)
        _ = screen.handle(.key(.down), now: 0)
        _ = screen.handle(.key(.down), now: 0)
        #expect(screen.selected == 2)
        _ = screen.handle(
            .rows([
                .init(id: "new", title: "new", isReadable: true), .init(id: "id2", title: "three", isReadable: true),
            ]),
            now: 0)
        #expect(screen.selected == 1)
        guard case .open(let id, consents: false)? = screen.handle(.key(.enter), now: 0).first else {
            Issue.record("nothing was opened")
            return
        }
        #expect(id == "id2")
        _ = screen.handle(.opened(id: "id2", Self.text("three", "first\nsecond")), now: 0)
        let rows = Self.shown(screen)
        #expect(rows[0].hasPrefix("three") && rows[2] == "first" && rows[3] == "second")
        _ = screen.handle(.key(.escape), now: 0)
        #expect(Self.shown(screen)[0].contains("10 notes at most"))
    }

    @Test("a long list shows the part with the selected note, on a screen of any size")
    func longList() {
        var screen = Self.list((1...50).map { "note \($0)" }, 8)
        _ = screen.handle(.key(.end), now: 0)
        #expect(Self.shown(screen).contains { $0.contains("note 50") })
        for (rows, columns) in [(1, 1), (2, 3), (3, 80), (24, 80), (5, 10)] {
            _ = screen.handle(.size(rows: rows, columns: columns), now: 0)
            let frame = screen.frame()
            #expect(frame.rows.count == rows)
            #expect(frame.rows.allSatisfy { TextLayout.cells($0.text, Self.width) <= max(1, columns) })
        }
    }

    @Test("a note is written, within its limits, and saved as it was typed")
    func writing() {
        var screen = Self.list()
        Self.type("n" + String(repeating: "é", count: 31), into: &screen)
        #expect(Self.shown(screen).last?.contains("full: 30") == true)
        #expect(Self.shown(screen)[0].contains("title 30/30"))
        _ = screen.handle(.key(.enter), now: 0)
        Self.type("日本\nx", into: &screen)
        #expect(Self.shown(screen)[0].contains("text 4/2500"))
        #expect(Self.shown(screen)[3] == "日本" && screen.frame().cursor.map { $0 == (4, 1) } == true)
        guard
            case .save(let id, let text, let before, thenLocks: false)? = screen.handle(.key(.control("s")), now: 0)
                .first
        else {
            Issue.record("nothing was saved")
            return
        }
        #expect(id == nil && before == nil && text == Self.text(String(repeating: "é", count: 30), "日本\nx"))
        // Until the answer comes nothing else is done; a refusal leaves the text where it is.
        #expect(Self.type("more", into: &screen).isEmpty)
        _ = screen.handle(.failed("there are 10 notes"), now: 0)
        #expect(Self.shown(screen)[3] == "日本" && Self.shown(screen).last == "there are 10 notes")
        _ = screen.handle(.key(.control("s")), now: 0)
        _ = screen.handle(.saved, now: 0)
        guard case .list = screen.mode else {
            Issue.record("not back at the list")
            return
        }
    }

    @Test("a change is discarded only when the user says so")
    func discarding() {
        var screen = Self.list()
        _ = screen.handle(.opened(id: "id0", Self.text("one", "text")), now: 0)
        _ = screen.handle(.key(.letter("e")), now: 0)
        Self.type("!", into: &screen)
        _ = screen.handle(.key(.escape), now: 0)
        #expect(Self.shown(screen).last?.contains("Throw away") == true)
        _ = screen.handle(.key(.letter("n")), now: 0)
        #expect(Self.shown(screen)[1] == "one!")
        _ = screen.handle(.key(.escape), now: 0)
        _ = screen.handle(.key(.letter("y")), now: 0)
        guard case .list = screen.mode else {
            Issue.record("not back at the list")
            return
        }
        // Leaving asks as well.
        Self.type("nx", into: &screen)
        #expect(screen.handle(.key(.control("c")), now: 0).isEmpty && screen.question == .discard)
    }

    @Test("removing asks first")
    func removing() {
        var screen = Self.list()
        #expect(Self.type("d", into: &screen).isEmpty)
        #expect(Self.type("n", into: &screen).isEmpty && screen.question == nil)
        guard case .remove(let id)? = Self.type("dy", into: &screen).first else {
            Issue.record("nothing was removed")
            return
        }
        #expect(id == "id0")
    }

    @Test("a note that asks for many rounds is opened only when the user says so")
    func costly() {
        var screen = Self.list()
        _ = screen.handle(.key(.enter), now: 0)
        _ = screen.handle(.costly(id: "id0", rounds: 5_000_000), now: 0)
        #expect(Self.shown(screen).joined(separator: " ").contains("5000000 rounds"))
        #expect(Self.type("n", into: &screen).isEmpty)
        _ = screen.handle(.costly(id: "id0", rounds: 5_000_000), now: 0)
        guard case .open(_, consents: true)? = Self.type("y", into: &screen).first else {
            Issue.record("nothing was opened")
            return
        }
    }

    @Test(
        "after a while without a key the view locks: nothing of the notes is left, and late answers show nothing"
    )
    func idle() {
        var screen = Self.list(["canary"])
        _ = screen.handle(.opened(id: "id0", Self.text("canary", "canary")), now: 0)
        _ = screen.handle(.key(.down), now: 30_000)
        #expect(screen.handle(.tick, now: 89_999).isEmpty)
        guard case .lock? = screen.handle(.tick, now: 90_000).first else {
            Issue.record("not locked")
            return
        }
        #expect(screen.isLocked && screen.rows.isEmpty)
        _ = screen.handle(.opened(id: "id0", Self.text("canary", "canary")), now: 90_001)
        _ = screen.handle(.rows([.init(id: "id0", title: "canary", isReadable: true)]), now: 90_001)
        #expect(!Self.shown(screen).joined().contains("canary"))
        // It stays locked, and asks for the password.
        #expect(screen.handle(.tick, now: 900_000).isEmpty)
        #expect(Self.shown(screen)[2].contains("Password"))
    }

    @Test("the text being written is saved before a lock; Ctrl-Z locks before it stops the program")
    func lockingSaves() {
        var screen = Self.list()
        Self.type("nkept", into: &screen)
        let actions = screen.handle(.key(.control("z")), now: 0)
        guard case .save(nil, let text, nil, thenLocks: true)? = actions.first, case .suspend? = actions.last else {
            Issue.record("not saved and stopped")
            return
        }
        #expect(text == Self.text("kept") && screen.isLocked && !Self.shown(screen).joined().contains("kept"))
        var other = Self.list()
        let plain = other.handle(.key(.control("l")), now: 0)
        guard case .lock? = plain.first, plain.count == 1 else {
            Issue.record("not locked")
            return
        }
    }

    @Test("a lock during a save saves once more, since the first save may fail unseen")
    func lockingWhileSaving() {
        var screen = Self.list()
        Self.type("nkept", into: &screen)
        guard case .save(nil, _, nil, thenLocks: false)? = screen.handle(.key(.control("s")), now: 0).first else {
            Issue.record("not saved")
            return
        }
        guard case .save(nil, let text, nil, thenLocks: true)? = screen.handle(.key(.control("l")), now: 0).first else {
            Issue.record("not saved before the lock")
            return
        }
        #expect(text == Self.text("kept") && screen.isLocked)
        // The first save's answer reports nothing false.
        _ = screen.handle(.saved, now: 0)
        #expect(screen.isLocked && Self.shown(screen).last == "locked; what was being written is saved")
        _ = screen.handle(.failed("not saved, comes again after the login"), now: 0)
        #expect(screen.isLocked && Self.shown(screen).joined(separator: " ").contains("comes again"))
        // A text that could not be saved comes back as a note that is saved nowhere.
        Self.logIn(&screen, now: 1)
        _ = screen.handle(.draft(text), now: 1)
        #expect(Self.shown(screen).joined().contains("kept"))
        guard case .save(nil, text, nil, thenLocks: true)? = screen.handle(.key(.control("l")), now: 1).first else {
            Issue.record("it was taken for saved")
            return
        }
    }

    @Test("Ctrl-Z during a login locks the view after it, and the late answer shows nothing")
    func lockingWhileLoggingIn() {
        var screen = Self.screen()
        Self.type("secret\n", into: &screen)
        let actions = screen.handle(.key(.control("z")), now: 0)
        guard case .lock? = actions.first, case .suspend? = actions.last, actions.count == 2 else {
            Issue.record("stopped with what the login has opened: \(actions.count) actions")
            return
        }
        _ = screen.handle(.loggedIn, now: 1)
        _ = screen.handle(.rows([.init(id: "id0", title: "canary", isReadable: true)]), now: 1)
        #expect(screen.isLocked && !Self.shown(screen).joined().contains("canary"))
        // Locked and with nothing in progress, nothing needs a lock.
        guard case .suspend? = screen.handle(.key(.control("z")), now: 2).first else {
            Issue.record("not stopped")
            return
        }
        Self.logIn(&screen, now: 3)
        #expect(!screen.isLocked)
    }

    @Test("an empty list is reported when the list has come, and not before")
    func empty() {
        var screen = Self.screen()
        Self.logIn(&screen)
        #expect(Self.shown(screen)[1] == "reading the notes" && !Self.shown(screen).joined().contains("logging in"))
        _ = screen.handle(.rows([]), now: 0)
        #expect(Self.shown(screen)[1].contains("no notes yet"))
        // After a lock it is unknown again.
        _ = screen.handle(.key(.control("l")), now: 0)
        Self.logIn(&screen)
        #expect(Self.shown(screen)[1] == "reading the notes")
    }

    @Test("a question or an error is never cut: it uses as many rows as it needs, up to half of the screen")
    func narrow() {
        var screen = Self.list()
        _ = screen.handle(.size(rows: 5, columns: 20), now: 0)
        _ = screen.handle(.key(.letter("d")), now: 0)
        #expect(Array(Self.shown(screen).suffix(2)) == ["Remove this note", "for good? y/n"])
        #expect(Self.shown(screen)[1].contains("one"), "the note in question is still there")
        _ = screen.handle(.key(.letter("n")), now: 0)
        #expect(Self.shown(screen).last?.hasPrefix("Enter opens") == true && Self.shown(screen)[3].contains("three"))
        _ = screen.handle(.size(rows: 10, columns: 20), now: 0)
        _ = screen.handle(.failed("not saved yet: averyveryverylongnameofahost did not answer"), now: 0)
        #expect(
            Array(Self.shown(screen).suffix(4)) == [
                "not saved yet:", "averyveryverylongna", "meofahost did not", "answer",
            ])
        _ = screen.handle(.size(rows: 1, columns: 20), now: 0)
        #expect(Self.shown(screen).count == 1)
    }

    @Test("a notice is shown and changes nothing that is in progress")
    func notice() {
        var screen = Self.list()
        _ = screen.handle(.key(.enter), now: 0)
        _ = screen.handle(.notice("version 9 is the newest"), now: 0)
        #expect(Self.shown(screen).last == "version 9 is the newest" && screen.isBusy)
    }

    @Test("a session that ends by itself locks the view and says why")
    func ended() {
        var screen = Self.list(["canary"])
        _ = screen.handle(.ended("the session has ended"), now: 0)
        #expect(screen.isLocked && Self.shown(screen).last == "the session has ended")
        #expect(!Self.shown(screen).joined().contains("canary"))
    }

    @Test("characters that would drive a terminal are shown as a dot")
    func safety() {
        var screen = Self.list(["a\u{1B}[2Jb\u{202E}c"])
        #expect(Self.shown(screen)[1].contains("a·[2Jb·c"))
        _ = screen.handle(.opened(id: "id0", Self.text("t\u{7}", "x\u{9B}1m\ty")), now: 0)
        #expect(Self.shown(screen)[0].hasPrefix("t·") && Self.shown(screen)[2] == "x·1m y")
    }

    @Test("the cursor's row stays on the screen, up and down keep the column, wide characters are not cut")
    func moving() {
        var screen = Self.list([], 8)
        Self.type("n\n" + (1...9).map { "row \($0)" }.joined(separator: "\n"), into: &screen)
        #expect(Self.shown(screen)[6] == "row 9" && screen.frame().cursor.map { $0 == (6, 5) } == true)
        for _ in 0..<8 { _ = screen.handle(.key(.up), now: 0) }
        #expect(Self.shown(screen)[3] == "row 1" && screen.frame().cursor.map { $0 == (3, 5) } == true)
        _ = screen.handle(.key(.up), now: 0)
        #expect(Self.shown(screen)[0].contains("title"))
        // On a narrower screen the cursor is still in sight.
        _ = screen.handle(.key(.tab), now: 0)
        for _ in 0..<8 { _ = screen.handle(.key(.down), now: 0) }
        _ = screen.handle(.size(rows: 6, columns: 4), now: 0)
        #expect(screen.frame().cursor.map { $0.row == 3 || $0.row == 4 } == true)
        #expect(Self.shown(screen)[3...4].contains { $0.contains("9") })
        let layout = TextLayout("日本語abc", columns: 5, width: Self.width)
        #expect(layout.rows.map(\.shown) == ["日本", "語abc"])
        #expect(layout.position(of: 3) == (1, 2) && layout.place(row: 0, column: 3) == 1)
        #expect(TextLayout("", columns: 5, width: Self.width).rows.count == 1)
        #expect(TextLayout("a\r\n\nb", columns: 5, width: Self.width).rows.map(\.shown) == ["a", "", "b"])
    }

    @Test(
        "rows break between words, and inside a word only where it is longer than a row",
        arguments: [
            ("the quick brown fox", 10, ["the quick ", "brown fox"]), ("the quick brown", 9, ["the quick", "brown"]),
            ("the quick   brown", 9, ["the quick", "brown"]),
            ("a incomprehensible b", 6, ["a ", "incomp", "rehens", "ible b"]),
            ("abcd ef", 4, ["abcd", "ef"]), ("ab cd\nef gh", 3, ["ab ", "cd", "ef ", "gh"]), ("    ", 2, ["  "]),
            ("  ab", 3, ["  ", "ab"]), ("日本 語日本", 5, ["日本 ", "語日", "本"]),
            ("a b\u{A0}c d", 4, ["a ", "b\u{A0}c ", "d"]),
            (" abc日", 4, [" ", "abc", "日"]), ("ab ", 2, ["ab"]), ("\n", 5, ["", ""]),
        ] as [(String, Int, [String])])
    func words(text: String, columns: Int, rows: [String]) {
        let layout = TextLayout(text, columns: columns, width: Self.width)
        #expect(layout.rows.map(\.shown) == rows)
        #expect(layout.rows.allSatisfy { TextLayout.cells($0.shown, Self.width) <= columns })
        // Every place between characters is in one row, and is found in that row again.
        var place = 0
        for character in text + "." {
            let (row, column): (Int, Int) = layout.position(of: place)
            #expect(layout.rows[row].range.lowerBound <= place && place <= layout.rows[row].range.upperBound)
            #expect(column <= columns && layout.position(of: layout.place(row: row, column: column)).row == row)
            if column < columns { #expect(layout.place(row: row, column: column) == place) }
            place += character.utf16.count
        }
        for row in layout.rows.indices {
            #expect(layout.position(of: layout.lastPlace(row: row)).row == row, "the end of row \(row) is in it")
            #expect(layout.position(of: layout.place(row: row, column: 1_000)).row == row)
        }
    }

    @Test("up, down and the end of a row stay within rows that were broken between words")
    func broken() {
        var screen = Self.list([], 10)
        Self.type(
            "n\n" + "a " + String(repeating: "b", count: 38) + " " + String(repeating: "c", count: 30), into: &screen)
        #expect(Self.shown(screen)[3...5].map(\.count) == [2, 39, 30])
        #expect(screen.frame().cursor.map { $0 == (5, 30) } == true)
        _ = screen.handle(.key(.up), now: 0)
        #expect(screen.frame().cursor.map { $0 == (4, 30) } == true)
        _ = screen.handle(.key(.up), now: 0)
        #expect(screen.frame().cursor.map { $0 == (3, 1) } == true)
        _ = screen.handle(.key(.end), now: 0)
        #expect(screen.frame().cursor.map { $0 == (3, 1) } == true)
        _ = screen.handle(.key(.down), now: 0)
        _ = screen.handle(.key(.end), now: 0)
        #expect(screen.frame().cursor.map { $0 == (4, 38) } == true)
    }

    private static func paste(_ text: String, into screen: inout NotesScreen) -> [NotesScreen.Action] {
        screen.handle(.key(.pasteBegin), now: 0) + type(text, into: &screen) + screen.handle(.key(.pasteEnd), now: 0)
    }

    @Test(
        "a paste goes in as one: what fits of it, and nothing after what does not; in a title lines are joined")
    func pasting() {
        var screen = Self.list()
        Self.type("n", into: &screen)
        #expect(Self.paste("two\nlines " + String(repeating: "x", count: 19) + "😀y", into: &screen).isEmpty)
        #expect(Self.shown(screen)[0].contains("title 29/30") && Self.shown(screen)[1].hasPrefix("two lines x"))
        #expect(Self.shown(screen).last?.contains("full: 30") == true)
        _ = screen.handle(.key(.enter), now: 0)
        #expect(Self.paste("a\n\nb", into: &screen).isEmpty)
        #expect(Self.shown(screen)[0].contains("text 4/2500"))
        _ = screen.handle(.key(.control("a")), now: 0)
        #expect(Self.paste(String(repeating: "é", count: 40_000), into: &screen).isEmpty)
        #expect(Self.shown(screen)[0].contains("text 2500/2500"))
        // The mark of the end was lost, and then a key is pressed: both take effect.
        _ = screen.handle(.key(.control("a")), now: 0)
        _ = screen.handle(.key(.pasteBegin), now: 0)
        Self.type("rest", into: &screen)
        guard case .save(_, let text, _, thenLocks: true)? = screen.handle(.key(.control("l")), now: 0).first else {
            Issue.record("nothing was saved")
            return
        }
        #expect(text.info.shownText == "rest")
    }

    @Test("pasted letters are not commands: not in the list, not in a note, not as an answer")
    func pastedCommands() {
        var screen = Self.list()
        for mode in 0..<3 {
            if mode == 1 { _ = screen.handle(.opened(id: "id0", Self.text("one", "text")), now: 0) }
            if mode == 2 { Self.type("d", into: &screen) }
            #expect(Self.paste("ldyq\n", into: &screen).isEmpty, "mode \(mode)")
        }
        #expect(screen.question == .remove(id: "id0"))
        guard case .remove? = Self.type("y", into: &screen).first else {
            Issue.record("what is typed is an answer")
            return
        }
    }

    @Test("a password may be pasted, with or without its end of line, and is not gathered as text")
    func pastedPassword() {
        var screen = Self.screen()
        _ = screen.handle(.key(.pasteBegin), now: 0)
        Self.type("canary", into: &screen)
        #expect(screen.pasted == nil)
        _ = screen.handle(.key(.pasteEnd), now: 0)
        guard case .login(_, let password)? = Self.type("\n", into: &screen).first else {
            Issue.record("no login")
            return
        }
        #expect(password.shownText == "canary")
    }
}
