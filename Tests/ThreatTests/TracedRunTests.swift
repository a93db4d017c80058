import Testing
import ThicketBlocking
import ThicketCrypto
import ThicketProcesses
import ThicketThreats

/// T1 and T2 by system calls: a removed, overwritten or renamed file hides nothing here, and neither does a connection
/// that bypasses the proxy.
@Suite(
    "Bytes that the program hands to the kernel", .blocking, .serialized, .timeLimit(.minutes(15)),
    .enabled(if: TracedProgram.isThere, "Debian's strace is not here: ./dev setup --tests installs it"))
struct TracedRunTests {
    @Test(
        "T2: no byte or name that thicket writes to files, kept or removed, has a text, password, word, token or key"
    )
    func files() throws {
        let house = try ThreatHouse("traced-files")
        let home = TracedHome(["THICKET_API_KEY": house.apiKey, "THICKET_APP": ThreatHouse.app])
        let place = ["THICKET_SERVER": "http://127.0.0.1:\(house.port)", "THICKET_USER": "ann"]
        let (one, two) = (home.text("password"), home.text("other password"))
        try home.run(["signup"], place.merging(["THICKET_PASSWORD": one]) { $1 })
        let token = try home.run(["token", "print"]).trimmed
        home.record("token", token)
        for (number, name) in ["first", "second", "third"].enumerated() {
            let object = #"{"title":"\#(home.text("\(name) title"))","text":"\#(home.text("\(name) text"))"}"#
            try home.run(["put", "notes", home.text("\(name) key"), object] + (number == 2 ? ["--offline"] : []))
        }
        let gone = home.text("removed key")
        try home.run(["put", "notes", gone, #"{"t":"\#(home.text("removed text"))"}"#])
        try home.run(["rm", "notes", gone])
        let words: [Substring] = try home.run(["words"]).split { $0 == " " || $0 == "\n" }.filter { !$0.hasSuffix(".") }
        #expect(words.count == 24)
        for start in 0..<22 { home.record("words", words[start..<(start + 3)].joined(separator: " ")) }
        try home.run(["passwd"], ["THICKET_PASSWORD": one, "THICKET_NEW_PASSWORD": two])
        let passphrase = home.text("passphrase")
        try home.run(["lock"], ["THICKET_PASSPHRASE": passphrase])
        #expect(home.written.contains { $0.hasSuffix("/objects/notes.db") })
        #expect(home.written.contains { $0.hasSuffix("/objects/notes.db-wal") || $0.hasSuffix("notes.db-journal") })

        let hunt = home.hunt
        let places = home.handedOver(sockets: false)
        #expect(
            places.first { $0.name.hasSuffix("notes.db-wal") }.map { $0.bytes.count > 20_000 } == true,
            "\(places.map(\.name))")
        for (name, bytes) in places {
            let found = hunt.findings(in: bytes, place: name)
            #expect(found.isEmpty, "\(found)")
        }
        for (path, bytes) in ThreatHouse.files(home.home.path) {
            #expect(hunt.findings(in: bytes, place: path).isEmpty, "what is left at the end")
        }
        // Counterproof: the token was printed.
        #expect(home.calls.contains { $0.isOutput && $0.texts.contains { $0.starts(with: Array(token.utf8)) } })
    }

    @Test(
        "T1, T2: thicket onions writes no file, contacts and resolves only the server, sends no name, password or text"
    )
    func notes() throws {
        let house = try ThreatHouse("traced-notes")
        let proxy = try RecordingProxy(to: house.port)
        defer { proxy.stop() }
        let notesRun = try NotesRun(house, port: proxy.port)
        let home = TracedHome(notesRun.variables)
        let (name, password) = (home.text("user name"), home.text("password"))
        try notesRun.stretched(name, password)
        for (what, text) in notesRun.texts { home.record(what, text) }
        let user = ["THICKET_USER": name, "THICKET_PASSWORD": password]
        let (title, info, new) = (
            home.text("title"), home.text("info"), home.text("new info")
        )
        let old = "--old-account"
        try home.run(["onions", "signup"], user)
        try home.run(["onions", "new", old], input: "\(title)\n\n\(info)\n", user)
        #expect(try home.run(["onions", "show", "1", old], user) == "\(title)\n\n\(info)\n")
        try home.run(["onions", "edit", "1", old], input: "\(title)\n\n\(new)\n", user)
        #expect(try home.run(["onions", "list", old], user).contains(title))
        try home.run(["onions", "rm", "1", old], user)
        try home.run(["onions", "delete", old], user)

        #expect(home.written.isEmpty, "\(home.written)")
        #expect(ThreatHouse.files(home.home.path).isEmpty)
        let (ports, paths) = home.connections
        #expect(ports.contains("\(proxy.port)") && ports.subtracting(["\(proxy.port)", "53"]).isEmpty, "\(ports)")
        #expect(paths.allSatisfy { $0.contains("nscd") }, "\(paths)")
        #expect(home.namesAsked.allSatisfy { $0 == "localhost" || $0.hasPrefix("localhost.") }, "\(home.namesAsked)")
        let hunt = home.hunt
        for isLine in [true, false] {
            let places = home.handedOver(sockets: isLine)
            #expect(!places.isEmpty)
            for (name, bytes) in places {
                let found = hunt.findings(in: bytes, place: name)
                #expect(found.isEmpty, "\(found)")
            }
        }
        // The kernel gets WebSocket frames masked; the proxy has them unmasked.
        for line in proxy.lines {
            let found = hunt.findings(in: line.read.up.payload, place: "a WebSocket")
            #expect(found.isEmpty, "\(found)")
        }
        let sent: [UInt8] = Array(home.handedOver(sockets: true).map(\.bytes).joined())
        for (name, text) in notesRun.sent {
            #expect(!CanarySearch([Canary(name, text)]).found(in: sent).isEmpty, "\(name) was not recorded")
        }
    }

    @Test("T2: writes to a file that is removed, and to one that is renamed, are seen")
    func counterproof() throws {
        let secret = "canary\(RandomBytes.hex(8))"
        let folder = TemporaryFolder("traced")
        let script = """
            cd \(folder.path); echo "$0" >gone; rm gone; echo "$0" | base64 | gzip >moved; mv moved stays; mkdir "$0"
            """
        let run = try TracedProgram(["/bin/bash", "-c", script, secret])
        let hunt = CanaryHunt([Canary("it", secret)])
        func found(_ file: String) -> Bool {
            let calls = run.calls.filter { $0.target.hasSuffix("/\(file)") && $0.name == "write" }
            return !hunt.findings(in: Array(calls.flatMap(\.texts).joined()), place: file).isEmpty
        }
        #expect(found("gone"))
        #expect(run.written.contains("gone") && run.written.contains("moved") && run.written.contains("stays"))
        #expect(run.written.contains(secret), "names of folders count")
        #expect(run.unseen.isEmpty && run.outcome.code == 0)
        // gzip writes the output of base64: compressed, and encoded inside.
        let packed: [UInt8] = Array(run.calls.filter { $0.target.hasSuffix("/moved") }.flatMap(\.texts).joined())
        #expect(!packed.isEmpty && !CanaryHunt([Canary("it", secret)]).findings(in: packed, place: "moved").isEmpty)
    }
}
