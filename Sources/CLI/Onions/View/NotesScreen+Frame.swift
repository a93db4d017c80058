import ThicketOnions

/// What the screen shows: all its rows, each with at most as many cells as the screen is wide.
struct ScreenFrame: Sendable, Equatable {
    enum Style: Int32, Sendable { case plain, reversed, bold, dim }

    struct Row: Sendable, Equatable {
        var text = ""
        var style = Style.plain
    }

    var rows: [Row]
    /// The position of the cursor; nil: it is hidden.
    var cursor: (row: Int, column: Int)?

    static func == (left: Self, right: Self) -> Bool {
        left.rows == right.rows && left.cursor?.row == right.cursor?.row && left.cursor?.column == right.cursor?.column
    }
}

extension NotesScreen {
    /// Rows between the head and the foot.
    var bodyRows: Int { max(1, size.rows - 2) }
    /// Rows of a note's text: below its title and an empty row.
    var textRows: Int { max(1, bodyRows - 2) }

    func layout(_ text: String) -> TextLayout { TextLayout(text, columns: max(2, size.columns - 1), width: width) }

    /// The screen at this moment.
    func frame() -> ScreenFrame {
        var frame = ScreenFrame(rows: Array(repeating: ScreenFrame.Row(), count: size.rows))
        switch mode {
        case .locked(let entry): drawLocked(entry, &frame)
        case .list: drawList(&frame)
        case .reading(let reading): drawReading(reading, &frame)
        case .editing(let editing): drawEditing(editing, &frame)
        }
        drawFoot(&frame)
        if question != nil { frame.cursor = nil }
        return frame
    }

    private func fit(_ text: String) -> String { TextLayout.fitted(text, columns: size.columns - 1, width) }

    /// Draws a head over the whole width.
    private func head(_ left: String, _ right: String, _ frame: inout ScreenFrame) {
        let columns = size.columns - 1
        let kept = TextLayout.fitted(right, columns: columns, width)
        let rest = columns - TextLayout.cells(kept, width)
        let start = TextLayout.fitted(left, columns: max(0, rest - 1), width)
        let gap = max(0, rest - TextLayout.cells(start, width))
        frame.rows[0] = .init(text: start + String(repeating: " ", count: gap) + kept, style: .reversed)
    }

    private func set(_ row: Int, _ text: String, _ style: ScreenFrame.Style = .plain, _ frame: inout ScreenFrame) {
        guard row < size.rows - 1 || size.rows == 1, frame.rows.indices.contains(row) else { return }
        frame.rows[row] = .init(text: fit(text), style: style)
    }

    // MARK: - Modes

    private func drawLocked(_ entry: LoginEntry, _ frame: inout ScreenFrame) {
        head("Encrypted notes", "locked", &frame)
        let label = entry.asksName ? "User name (not shown): " : "\(secretName) (not shown): "
        set(2, label, .plain, &frame)
        if size.rows > 3 { frame.cursor = (2, min(TextLayout.cells(label, width), max(0, size.columns - 1))) }
    }

    private func drawList(_ frame: inout ScreenFrame) {
        head("Encrypted notes", standing(), &frame)
        if rows.isEmpty {
            set(1, isListed ? "There are no notes yet: n makes one." : "reading the notes", .dim, &frame)
        }
        let first = min(max(0, selected - bodyRows / 2), max(0, rows.count - bodyRows))
        for (row, note) in zip(1..., rows.dropFirst(first).prefix(bodyRows)) {
            let number = first + row
            let mark = note.isReadable ? "" : "(locked) "
            set(
                row, " \(number)  \(mark)\(note.title)", number - 1 == selected ? .reversed : .plain, &frame)
        }
    }

    private func drawReading(_ reading: Reading, _ frame: inout ScreenFrame) {
        head(reading.text.title.shownText, "", &frame)
        let layout = layout(reading.text.info.shownText)
        let first = min(reading.top, max(0, layout.rows.count - 1))
        for (row, line) in zip(2..., layout.rows.dropFirst(first).prefix(textRows)) {
            set(row, line.shown, .plain, &frame)
        }
    }

    private func drawEditing(_ editing: Editing, _ frame: inout ScreenFrame) {
        let typed = editing.typed
        let place = editing.field == .title ? "title" : "text"
        let selected = typed.selection.isEmpty ? "" : "\(typed.selection.count) selected, "
        head(
            editing.id == nil ? "New note" : "Change the note", "\(selected)\(place) \(typed.units)/\(typed.unitsMax)",
            &frame)
        // While a title that is wider than the screen is typed, its end is shown.
        let (title, column) = window(editing.title)
        set(1, title, .bold, &frame)
        let layout = layout(editing.info.text)
        for (row, line) in zip(3..., layout.rows.dropFirst(editing.top).prefix(textRows)) {
            set(row, line.shown, .plain, &frame)
        }
        if editing.field == .title {
            frame.cursor = (min(1, size.rows - 1), column)
        } else {
            let (row, column) = layout.position(of: editing.info.cursor)
            frame.cursor = (min(3 + row - editing.top, max(0, size.rows - 2)), min(column, max(0, size.columns - 1)))
        }
    }

    /// As much of the title around its cursor as fits, and the cursor's column in it.
    private func window(_ title: TypedText) -> (text: String, column: Int) {
        let columns = max(2, size.columns - 1)
        var head = title.part(0..<title.cursor)
        while TextLayout.cells(head, width) >= columns { head = head.dropFirst() }
        return (String(head) + title.part(title.cursor..<title.units), TextLayout.cells(head, width))
    }

    // MARK: - Foot

    /// The overview of keys is one row. A question or message has as many rows as it needs, up to half of the screen: a
    /// question must be readable in full.
    private func drawFoot(_ frame: inout ScreenFrame) {
        guard size.rows > 1 else { return }
        let said = question.map(Self.words) ?? (message.isEmpty ? nil : message)
        var lines = [keys]
        if let said { lines = TextLayout.lines(said, columns: max(2, size.columns - 1), width) }
        let room = max(1, size.rows / 2)
        for (row, line) in zip(max(0, size.rows - min(room, lines.count))..., lines.prefix(room)) {
            frame.rows[row] = .init(text: fit(line), style: .dim)
        }
    }

    private var keys: String {
        switch mode {
        case .locked: return "Enter logs in   Esc leaves"
        case .list: return "Enter opens   n new   d removes   l locks   q leaves"
        case .reading: return "e changes   d removes   Esc back   l locks"
        case .editing: return "Ctrl-S saves   Tab title/text   Esc leaves it   Ctrl-L saves and locks"
        }
    }

    private static func words(_ question: Question) -> String {
        switch question {
        case .remove: "Remove this note for good? y/n"
        case .discard: "Throw away what you changed? y/n"
        case .open(_, let rounds):
            "It asks for \(rounds) rounds of key stretching, \(max(1, rounds / 250_000)) s or more. Open it? y/n"
        }
    }
}
