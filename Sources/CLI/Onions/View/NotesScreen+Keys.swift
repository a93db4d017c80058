import ThicketOnions

/// The effect of each key.
extension NotesScreen {
    /// Bytes of a paste that are processed: more than any text can hold.
    private static let pasteBytesMax = 65_536

    mutating func pressed(_ key: Key) -> [Action] {
        if isPasted(key) { return [] }
        switch key {
        case .control("z"): return lock("locked", then: .suspend)
        case .control("c"): return leave()
        case .control("l") where !isLocked: return lock("locked")
        default: break
        }
        if case .locked(let entry) = mode { return typed(key, into: entry) }
        guard !isBusy else {
            message = "one moment"
            return []
        }
        if let question { return answer(question, key) }
        switch mode {
        case .locked: return []
        case .list: return inList(key)
        case .reading(let reading): return inReading(key, reading)
        case .editing(let editing): return inEditing(key, editing)
        }
    }

    private mutating func leave() -> [Action] {
        if case .editing(let editing) = mode, editing.isChanged, question != .discard {
            question = .discard
            return []
        }
        return [.quit]
    }

    // MARK: - Pasting

    /// Whether a key is part of a paste. A paste is inserted as a whole into the note that is being written, and is
    /// never a command: letters of a pasted text must not remove a note. A password is not collected here.
    private mutating func isPasted(_ key: Key) -> Bool {
        if key == .pasteBegin {
            pasted = isLocked ? nil : ""
            return true
        }
        guard pasted != nil else { return key == .pasteEnd }
        switch key {
        case .letter(let scalar): paste(scalar)
        case .enter: paste("\n")
        case .tab: paste("\t")
        case .pasteEnd: endPaste()
        default:
            // The end mark was lost.
            endPaste()
            return false
        }
        return true
    }

    private mutating func paste(_ scalar: Unicode.Scalar) {
        guard let count = pasted?.utf8.count, count < Self.pasteBytesMax else { return }
        pasted?.unicodeScalars.append(scalar)
    }

    /// Inserts the pasted text at the cursor. A title has one line.
    mutating func endPaste() {
        guard let text = pasted else { return }
        pasted = nil
        guard case .editing(var editing) = mode, question == nil else { return }
        guard !isBusy else {
            message = "one moment"
            return
        }
        let isTitle = editing.field == .title
        reportDropped(editing.typed.insert(isTitle ? String(text.map { $0.isNewline ? " " : $0 }) : text), editing)
        scroll(&editing)
        mode = .editing(editing)
    }

    // MARK: - Locked

    private mutating func typed(_ key: Key, into entry: LoginEntry) -> [Action] {
        guard !isBusy else { return [] }
        let bytes: [UInt8]
        switch key {
        case .letter(let scalar): bytes = Array(String(Character(scalar)).utf8)
        case .enter: bytes = [0x0A]
        case .backspace: bytes = [0x08]
        case .control("u"): bytes = [0x15]
        case .escape: return [.quit]
        default: return []
        }
        for byte in bytes {
            guard let login = entry.enter(byte) else { continue }
            (isBusy, message) = (true, "logging in")
            return [.login(name: login.name, password: login.password)]
        }
        return []
    }

    // MARK: - Questions

    private mutating func answer(_ question: Question, _ key: Key) -> [Action] {
        self.question = nil
        guard key == .letter("y") || key == .letter("Y") else { return [] }
        switch question {
        case .discard:
            mode = .list
            return []
        case .remove(let id):
            isBusy = true
            return [.remove(id: id)]
        case .open(let id, _):
            (isBusy, message) = (true, "opening it; this takes a while")
            return [.open(id: id, consents: true)]
        }
    }

    // MARK: - List

    private mutating func inList(_ key: Key) -> [Action] {
        let page = max(1, bodyRows - 1)
        switch key {
        case .up, .letter("k"): select(selected - 1)
        case .down, .letter("j"): select(selected + 1)
        case .pageUp: select(selected - page)
        case .pageDown, .letter(" "): select(selected + page)
        case .home: select(0)
        case .end: select(rows.count - 1)
        case .enter, .right: return open()
        case .letter("n"): begin(nil, nil)
        case .letter("d"), .delete:
            if rows.indices.contains(selected) { question = .remove(id: rows[selected].id) }
        case .letter("l"): return lock("locked")
        case .letter("q"), .escape: return [.quit]
        default: break
        }
        return []
    }

    private mutating func select(_ place: Int) { selected = min(max(0, place), max(0, rows.count - 1)) }

    private mutating func open() -> [Action] {
        guard rows.indices.contains(selected) else { return [] }
        isBusy = true
        return [.open(id: rows[selected].id, consents: false)]
    }

    /// - Parameter isNew: the text is not saved anywhere.
    mutating func begin(_ id: String?, _ before: NoteText?, isNew: Bool = false) {
        mode = .editing(
            Editing(
                id: id, before: isNew ? nil : before,
                title: TypedText(before?.title.shownText ?? "", unitsMax: NoteField.title.unitsMax),
                info: TypedText(before?.info.shownText ?? "", unitsMax: NoteField.info.unitsMax)))
    }

    // MARK: - Reading

    private mutating func inReading(_ key: Key, _ reading: Reading) -> [Action] {
        var reading = reading
        let count = layout(reading.text.info.shownText).rows.count
        let last = max(0, count - textRows)
        switch key {
        case .up, .letter("k"): reading.top = max(0, reading.top - 1)
        case .down, .letter("j"): reading.top = min(last, reading.top + 1)
        case .pageUp: reading.top = max(0, reading.top - textRows)
        case .pageDown, .letter(" "): reading.top = min(last, reading.top + textRows)
        case .home: reading.top = 0
        case .end: reading.top = last
        case .letter("e"), .enter:
            begin(reading.id, reading.text)
            return []
        case .letter("d"), .delete: question = .remove(id: reading.id)
        case .letter("l"): return lock("locked")
        case .letter("q"), .escape, .left, .backspace:
            mode = .list
            return []
        default: break
        }
        mode = .reading(reading)
        return []
    }

    // MARK: - Editing

    private mutating func inEditing(_ key: Key, _ editing: Editing) -> [Action] {
        var editing = editing
        switch key {
        case .control("s"):
            (isBusy, message) = (true, "saving")
            return [.save(id: editing.id, editing.text, before: editing.before, thenLocks: false)]
        case .escape:
            if editing.isChanged { question = .discard } else { mode = .list }
            return []
        case .tab: editing.field = editing.field == .title ? .info : .title
        case .enter where editing.field == .title: editing.field = .info
        case .enter: reportDropped(editing.typed.type("\n"), editing)
        case .letter(let scalar): reportDropped(editing.typed.type(scalar), editing)
        case .backspace: editing.typed.deleteBackward()
        case .delete, .control("d"): editing.typed.deleteForward()
        case .left: editing.typed.moveLeft()
        case .right: editing.typed.moveRight()
        case .shiftLeft: editing.typed.moveLeft(selects: true)
        case .shiftRight: editing.typed.moveRight(selects: true)
        case .control("a"): editing.typed.selectAll()
        case .up, .down, .pageUp, .pageDown, .home, .end: move(key, &editing)
        case .control, .pasteBegin, .pasteEnd: break
        }
        scroll(&editing)
        mode = .editing(editing)
        return []
    }

    /// Text that does not fit was dropped; a message reports it.
    private mutating func reportDropped(_ dropped: Int, _ editing: Editing) {
        guard dropped > 0 else { return }
        message = "it is full: \(editing.typed.unitsMax) characters at most"
    }

    private func move(_ key: Key, _ editing: inout Editing) {
        guard editing.field == .info else {
            switch key {
            case .home, .up: editing.title.move(to: 0)
            case .end: editing.title.move(to: editing.title.units)
            case .down, .pageDown: editing.field = .info
            default: break
            }
            return
        }
        let layout = layout(editing.info.text)
        let (row, column) = layout.position(of: editing.info.cursor)
        switch key {
        case .up where row == 0: editing.field = .title
        case .up: editing.info.move(to: layout.place(row: row - 1, column: column))
        case .down: editing.info.move(to: layout.place(row: row + 1, column: column))
        case .pageUp: editing.info.move(to: layout.place(row: max(0, row - textRows), column: column))
        case .pageDown: editing.info.move(to: layout.place(row: row + textRows, column: column))
        case .home: editing.info.move(to: layout.rows[row].range.lowerBound)
        case .end: editing.info.move(to: layout.lastPlace(row: row))
        default: break
        }
    }

    /// Keeps the cursor's row on the screen.
    func scroll(_ editing: inout Editing) {
        guard editing.field == .info else { return }
        let row = layout(editing.info.text).position(of: editing.info.cursor).row
        editing.top = min(max(editing.top, row - textRows + 1), row)
    }
}
