import Testing
import ThicketBlocking
import ThicketCrypto
import ThicketProcesses
import ThicketThreats

/// T1 and T2 by what the kernel is handed: a file that is removed, written over or renamed hides nothing here, and neither
/// does a connection that goes past the proxy.
@Suite(
    "What the program hands to the kernel", .blocking, .serialized, .timeLimit(.minutes(15)),
    .enabled(if: TracedProgram.isThere, "Debian's strace is not here: ./dev setup --tests installs it"))
struct TracedLifeTests {
    @Test(
        "T2: through a life of thicket no byte that it writes to any file, kept or removed, and no file's name holds a text, password, word, token or key"
    )
    func files() throws {
        let house: ThreatHouse = try .init("traced-files")
        let home: TracedHome = .init(["THICKET_API_KEY": house.apiKey, "THICKET_APP": ThreatHouse.app])
        let place: [String: String] = ["THICKET_SERVER": "http://127.0.0.1:\(house.port)", "THICKET_USER": "ann"]
        let (one, two): (String, String) = (home.text("password"), home.text("other password"))
        try home.run(["signup"], place.merging(["THICKET_PASSWORD": one]) { $1 })
        let token: String = try home.run(["token", "print"]).trimmed
        home.record("token", token)
        for (number, name): (Int, String) in ["first", "second", "third"].enumerated() {
            let object: String = #"{"title":"\#(home.text("\(name) title"))","text":"\#(home.text("\(name) text"))"}"#
            try home.run(["put", "notes", home.text("\(name) key"), object] + (number == 2 ? ["--offline"] : []))
        }
        let gone: String = home.text("removed key")
        try home.run(["put", "notes", gone, #"{"t":"\#(home.text("removed text"))"}"#])
        try home.run(["rm", "notes", gone])
        let words: [Substring] = try home.run(["words"]).split { $0 == " " || $0 == "\n" }.filter { !$0.hasSuffix(".") }
        #expect(words.count == 24)
        for start: Int in 0..<22 { home.record("words", words[start..<(start + 3)].joined(separator: " ")) }
        try home.run(["passwd"], ["THICKET_PASSWORD": one, "THICKET_NEW_PASSWORD": two])
        let passphrase: String = home.text("passphrase")
        try home.run(["lock"], ["THICKET_PASSPHRASE": passphrase])
        #expect(home.written.contains { $0.hasSuffix("/objects/notes.db") })
        #expect(home.written.contains { $0.hasSuffix("/objects/notes.db-wal") || $0.hasSuffix("notes.db-journal") })

        let hunt: CanaryHunt = home.hunt
        let places: [(name: String, bytes: [UInt8])] = home.handedOver(sockets: false)
        #expect(
            places.first { $0.name.hasSuffix("notes.db-wal") }.map { $0.bytes.count > 20_000 } == true,
            "\(places.map(\.name))")
        for (name, bytes): (String, [UInt8]) in places {
            let found: [String] = hunt.findings(in: bytes, place: name)
            #expect(found.isEmpty, "\(found)")
        }
        for (path, bytes): (String, [UInt8]) in ThreatHouse.files(home.home.path) {
            #expect(hunt.findings(in: bytes, place: path).isEmpty, "what is left at the end")
        }
        // That it was there to be written: the token was printed.
        #expect(home.calls.contains { $0.isOutput && $0.texts.contains { $0.starts(with: Array(token.utf8)) } })
    }

    @Test(
        "T1, T2: thicket onions writes no file at all, connects to nobody but the server, asks for no name but its, and hands no name, password or text to anybody"
    )
    func notes() throws {
        let house: ThreatHouse = try .init("traced-notes")
        let proxy: RecordingProxy = try .init(to: house.port)
        defer { proxy.stop() }
        let life: NotesLife = try .init(house, port: proxy.port)
        let home: TracedHome = .init(life.variables)
        let (name, password): (String, String) = (home.text("user name"), home.text("password"))
        try life.stretched(name, password)
        for (what, text): (String, String) in life.texts { home.record(what, text) }
        let user: [String: String] = ["THICKET_USER": name, "THICKET_PASSWORD": password]
        let (title, info, new): (String, String, String) = (
            home.text("title"), home.text("info"), home.text("new info")
        )
        let old: String = "--old-account"
        try home.run(["onions", "signup"], user)
        try home.run(["onions", "new", old], input: "\(title)\n\n\(info)\n", user)
        #expect(try home.run(["onions", "show", "1", old], user) == "\(title)\n\n\(info)\n")
        try home.run(["onions", "edit", "1", old], input: "\(title)\n\n\(new)\n", user)
        #expect(try home.run(["onions", "list", old], user).contains(title))
        try home.run(["onions", "rm", "1", old], user)
        try home.run(["onions", "delete", old], user)

        #expect(home.written.isEmpty, "\(home.written)")
        #expect(ThreatHouse.files(home.home.path).isEmpty)
        let (ports, paths): (Set<String>, Set<String>) = home.connections
        #expect(ports.contains("\(proxy.port)") && ports.subtracting(["\(proxy.port)", "53"]).isEmpty, "\(ports)")
        #expect(paths.allSatisfy { $0.contains("nscd") }, "\(paths)")
        #expect(home.namesAsked.allSatisfy { $0 == "localhost" || $0.hasPrefix("localhost.") }, "\(home.namesAsked)")
        let hunt: CanaryHunt = home.hunt
        for isLine: Bool in [true, false] {
            let places: [(name: String, bytes: [UInt8])] = home.handedOver(sockets: isLine)
            #expect(!places.isEmpty)
            for (name, bytes): (String, [UInt8]) in places {
                let found: [String] = hunt.findings(in: bytes, place: name)
                #expect(found.isEmpty, "\(found)")
            }
        }
        // WebSocket frames are masked before the kernel has them: the proxy has them without.
        for line: RecordingProxy.Line in proxy.lines {
            let found: [String] = hunt.findings(in: line.read.up.payload, place: "a WebSocket")
            #expect(found.isEmpty, "\(found)")
        }
        let sent: [UInt8] = Array(home.handedOver(sockets: true).map(\.bytes).joined())
        for (name, text): (String, String) in life.sent {
            #expect(!CanarySearch([Canary(name, text)]).found(in: sent).isEmpty, "\(name) was not recorded")
        }
    }

    @Test("T2: what a program writes to a file that it removes, and to one that it renames, is seen")
    func counterproof() throws {
        let secret: String = "canary\(RandomBytes.hex(8))"
        let folder: TemporaryFolder = .init("traced")
        let script: String = """
            cd \(folder.path); echo "$0" >gone; rm gone; echo "$0" | base64 | gzip >moved; mv moved stays; mkdir "$0"
            """
        let run: TracedProgram = try .init(["/bin/bash", "-c", script, secret])
        let hunt: CanaryHunt = .init([Canary("it", secret)])
        func found(_ file: String) -> Bool {
            let calls: [TracedProgram.Call] = run.calls.filter { $0.target.hasSuffix("/\(file)") && $0.name == "write" }
            return !hunt.findings(in: Array(calls.flatMap(\.texts).joined()), place: file).isEmpty
        }
        #expect(found("gone"))
        #expect(run.written.contains("gone") && run.written.contains("moved") && run.written.contains("stays"))
        #expect(run.written.contains(secret), "names of folders count")
        #expect(run.unseen.isEmpty && run.outcome.code == 0)
        // gzip writes what base64 made: packed, and inside of that encoded.
        let packed: [UInt8] = Array(run.calls.filter { $0.target.hasSuffix("/moved") }.flatMap(\.texts).joined())
        #expect(!packed.isEmpty && !CanaryHunt([Canary("it", secret)]).findings(in: packed, place: "moved").isEmpty)
    }
}
