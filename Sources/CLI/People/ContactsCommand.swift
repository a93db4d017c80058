import ThicketClient
import ThicketCommandLine
import ThicketKeyLog
import ThicketPlatform
import ThicketProtocol

/// `thicket contacts`: the people whose keys this machine knows.
enum ContactsCommand {
    static func list(_ call: Call) async throws(Failure) {
        let contacts = try await PeopleCall.run(call, "cannot list the contacts") { book throws(PeopleError) in
            try await book.contacts()
        }
        for (contact, standing) in contacts {
            guard !call.flag("json") else {
                var object: JSONObject = ["user": .string(contact.user), "state": .string(standing.rawValue)]
                if let name = contact.name { object["name"] = .string(name) }
                Terminal.write(JSONValue.object(object).serializedText + "\n")
                continue
            }
            Terminal.write("\(Screen.safe(contact.name ?? "-"))  \(Screen.safe(contact.user))  \(standing.rawValue)\n")
        }
    }

    static func add(_ call: Call) async throws(Failure) {
        let text = call.argument("USER")
        let keys = try await PeopleCall.run(call, "the contact was not added") { book throws(PeopleError) in
            guard PeopleCall.isID(text) else { return try await book.addContact(named: text) }
            guard let id = try? UserID(text) else { throw .absent }
            return try await book.addContact(id)
        }
        Terminal.write(
            "added \(Screen.safe(keys.user)). 'thicket verify \(Screen.safe(text))' shows the number to compare with that person.\n"
        )
    }

    static func remove(_ call: Call) async throws(Failure) {
        let text = call.argument("USER")
        let wasKnown = try await PeopleCall.run(call, "the contact was not removed") { book throws(PeopleError) in
            try await book.forget(try await PeopleCall.user(text, book))
        }
        guard wasKnown else { throw Failure("there is no contact \(Screen.safe(text))", .notFound) }
        Terminal.write("removed; the next keys of this user are accepted like first ones\n")
    }
}

/// `thicket verify USER`: the safety number with another person.
enum SafetyNumberCommand {
    /// The digits as a QR code, which another machine reads, on a terminal that is wide enough.
    private static func draw(_ number: SafetyNumber) {
        let output = Terminal.standardOutput
        guard Terminal.isTerminal(output), let code = QRCode(number.digits), code.columns <= Terminal.columns(output)
        else { return }
        // Not as text, from which the terminal's colors would be removed.
        _ = Terminal.write(Array((code.lines.joined(separator: "\n") + "\n").utf8), to: output)
    }

    static func run(_ call: Call) async throws(Failure) {
        let (text, digits) = (call.argument("USER"), call.value("matches"))
        let what = "the keys of \(Screen.safe(text)) were not compared"
        let number = try await PeopleCall.run(call, what) { book throws(PeopleError) in
            let found = try await book.safetyNumber(with: try await PeopleCall.user(text, book))
            guard let digits else { return (found.number, false) }
            let typed = digits.filter { $0.isASCII && $0.isNumber }
            guard same(typed, found.number.digits) else { return (found.number, false) }
            try await book.confirm(found.keys)
            return (found.number, true)
        }
        guard digits != nil else {
            Terminal.write("\(number.0)\n")
            draw(number.0)
            Terminal.writeError(
                "Compare these digits with that person, by phone or in person. If they are equal: 'thicket verify USER "
                    + "--matches DIGITS'.\n")
            return
        }
        guard number.1 else {
            throw Failure(
                "the digits are not those of this machine: do not send to this user before you know why", .alarm)
        }
        Terminal.write("confirmed: the keys of \(Screen.safe(text)) are those that you have compared\n")
    }
}
