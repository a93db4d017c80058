import ThicketClient
import ThicketCommandLine
import ThicketProtocol

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// `thicket edit`: opens an object, or one text of it, in the user's editor and merges what was saved.
enum EditCommand {
    static func run(_ call: Call) async throws(Failure) {
        let (name, key) = (call.argument("BUCKET"), call.argument("KEY"))
        try Keys.check(key)
        var field: FieldPath?
        if let text = call.value("text") {
            guard let path = FieldPath(text) else {
                throw Failure("--text names a field, as in text or body.plain, not '\(text)'", .usage)
            }
            field = path
        }
        let open = try await OpenBucket.open(try Account(call), bucket: name, store: .profile)
        try await open.ready()
        let base = try await trying("cannot read \(name)/\(key)") { () throws(ClientError) in
            try await open.bucket.get(key)
        }
        let sheet = try EditSheet(base, key: key, field: field, what: "\(name)/\(key)")
        guard let mine = try await write(sheet, call) else {
            await open.close()
            Terminal.write("\(name)/\(key): nothing changed\n")
            return
        }
        do throws(Failure) {
            try await save(mine, base, key, in: open)
        } catch {
            sheet.keep()
            throw Failure("\(error.text)\nWhat you wrote is in \(sheet.path)", error.code)
        }
        await open.close()
        sheet.remove()
    }

    /// Lets the user edit until the content can be parsed. nil: nothing was changed.
    private static func write(_ sheet: EditSheet, _ call: Call) async throws(Failure) -> JSONObject? {
        while true {
            do throws(Failure) {
                try await Editor.run(Editor.command(call.environment), sheet.path)
            } catch {
                let isTouched = sheet.isChanged
                if isTouched { sheet.keep() } else { sheet.remove() }
                throw Failure(error.text + (isTouched ? "\nWhat you wrote is in \(sheet.path)" : ""), error.code)
            }
            guard sheet.isChanged else {
                sheet.remove()
                return nil
            }
            do throws(Failure) { return try sheet.read() } catch {
                // The unparsable content exists nowhere else: Ctrl-C at the question must not remove it.
                sheet.keep()
                guard Terminal.isTerminal(STDIN_FILENO), Terminal.isTerminal(Terminal.standardError) else {
                    throw Failure("\(error.text)\nNothing was saved. What you wrote is in \(sheet.path)")
                }
                Terminal.writeError("thicket: \(error.text)\nEdit again? [Y/n] ")
                let answer = readLine() ?? "n"
                guard !answer.lowercased().hasPrefix("n") else {
                    throw Failure("nothing was saved. What you wrote is in \(sheet.path)")
                }
            }
        }
    }

    private static func save(
        _ mine: JSONObject, _ base: JSONObject?, _ key: String, in open: OpenBucket
    ) async throws(Failure) {
        let what = "save \(open.name)/\(key)"
        var remarks = [String]()
        let hadEdits = try await trying("cannot \(what)") { () throws(ClientError) in
            try await open.bucket.info(key).hasUnconfirmedEdits
        }
        while true {
            let current = try await trying("cannot \(what)") { () throws(ClientError) in
                try await open.bucket.get(key)
            }
            let merge: ThreeWayMerge
            do {
                merge = try ThreeWayMerge(
                    base: current == nil ? nil : base, mine: mine, theirs: current ?? JSONObject())
            } catch {
                throw Failure("cannot \(what): what you wrote does not fit what others wrote meanwhile (\(error))")
            }
            remarks = EditCommand.remarks(merge, wasThere: base != nil, isThere: current != nil)
            let isReplaced = try await trying("cannot \(what)") { () throws(ClientError) in
                try await open.bucket.replace(key) { object, _ in object == current ? merge.diff : nil }
            }
            if isReplaced { break }
        }
        try await open.confirm(key, what, hadEdits: hadEdits)
        let version = try await trying(what) { () throws(ClientError) in try await open.bucket.info(key).version
        }
        for remark in remarks { Terminal.writeError("\(remark)\n") }
        Terminal.write("\(open.name)/\(key) is at version \(version)\n")
    }

    private static func remarks(_ merge: ThreeWayMerge, wasThere: Bool, isThere: Bool) -> [String] {
        if wasThere, !isThere {
            return ["It was removed elsewhere while you edited it; it exists again, with your edit."]
        }
        guard merge.isMerged else { return [] }
        guard !merge.overridden.isEmpty else {
            return ["It was changed elsewhere while you edited it; both edits are merged."]
        }
        let paths = merge.overridden.map(Screen.safe).joined(separator: ", ")
        return [
            "It was changed elsewhere while you edited it. Both edits are merged, except for \(paths): there yours "
                + "counts, and the other is in the history."
        ]
    }
}

/// The file that the editor opens: the object as JSON, or one text of it.
struct EditSheet: Sendable {
    let path: String
    private let folder: EditFolder
    private let base: JSONObject
    private let field: FieldPath?
    private let start: [UInt8]

    init(_ object: JSONObject?, key: String, field: FieldPath?, what: String) throws(Failure) {
        base = object ?? JSONObject()
        self.field = field
        if let field {
            switch field.value(in: base) {
            case .string(let text)?: start = Array(text.utf8)
            case nil: start = []
            case .some:
                throw Failure(
                    "the field \(field.parts.joined(separator: ".")) of \(what) is no text; without --text the whole "
                        + "object is edited as JSON")
            }
        } else {
            start = Pretty.bytes(.object(base))
        }
        folder = try EditFolder()
        // The extension tells editors the type. Keys do not contain a slash.
        let ending = field == nil ? ".json" : (key.contains(".") ? "" : ".txt")
        path = "\(folder.path)/\(key.utf8.count <= 200 ? key : "object")\(ending)"
        try Files.replace(path, start, mode: 0o600)
    }

    private var contents: [UInt8]? {
        if case .bytes(let bytes) = Files.read(path, bytesMax: Inputs.bytesMax) { bytes } else { nil }
    }

    var isChanged: Bool { contents.map { EditSheet.kept($0, start, isText: field != nil) != start } ?? false }

    /// Editors end a file with a line end, and some add a byte order mark; both are removed from a text that had none.
    static func kept(_ bytes: [UInt8], _ start: [UInt8], isText: Bool) -> [UInt8] {
        guard isText else { return bytes }
        var kept = ByteOrderMark.isFirst(in: start) ? bytes[...] : ByteOrderMark.removed(from: bytes)
        guard start.last != 0x0A, kept.last == 0x0A else { return Array(kept) }
        kept.removeLast()
        if kept.last == 0x0D, start.last != 0x0D { kept.removeLast() }
        return Array(kept)
    }

    /// The object as the user saved it.
    func read() throws(Failure) -> JSONObject {
        guard let bytes = contents else { throw Failure("\(path) cannot be read") }
        guard let field else { return try Inputs.object(bytes, "what you saved") }
        guard let text = String(validating: EditSheet.kept(bytes, start, isText: true), as: UTF8.self) else {
            throw Failure("what you saved is not UTF-8 text")
        }
        guard let object = field.replaced(in: base, by: .string(text)) else {
            throw Failure("the object has no place for the field \(field.parts.joined(separator: "."))")
        }
        return object
    }

    func remove() { folder.remove() }

    /// Keeps the written file for its owner.
    func keep() { folder.keep() }
}
