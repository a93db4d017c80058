import Glibc
import ThicketAcceptance
import ThicketProcesses

/// Alice puts a folder of recipes with photos and a large video into her tree on one machine; the cable is pulled and
/// both programs are killed on the way; her other machine shows the whole skeleton at once and fetches what she opens.
/// At the end one sees what the server has of it. All commands are those that a user would type.
struct TreeDemo {
    /// Bytes of the video without `--size`: up and down in half a minute in a debug build on two busy cores.
    private static let standardBytes = 512 << 20
    /// Smallest and largest video: it has several parts, and the disk has it six times.
    private static let sizes = 16 << 20...16 << 30
    private static let recipes = ["sourdough", "onion soup", "plum cake", "lentil stew", "walnut bread", "fig jam"]

    private let stand: TreeStand
    private let videoBytes: Int
    private let start = Steady.milliseconds()

    static func run(_ arguments: [String]) throws {
        var arguments = arguments.filter { $0 != "--fast" }
        let size = try takeSize(&arguments)
        if let word = arguments.first { throw DemoError("demo tree does not know \(word); see --help") }
        try TreeDemo(stand: TreeStand(), videoBytes: size ?? standardBytes).play()
    }

    /// The value of `--size`, which is removed from the arguments; nil without it.
    static func takeSize(_ arguments: inout [String]) throws -> Int? {
        guard let place = arguments.firstIndex(of: "--size") else { return nil }
        let text = arguments.dropFirst(place + 1).first ?? "nothing"
        let units = [("GiB", 1 << 30), ("MiB", 1 << 20)]
        let unit = units.first { text.hasSuffix($0.0) }
        guard let unit, let number = Int(text.dropLast(3)), (1...16_384).contains(number),
            sizes.contains(number * unit.1)
        else { throw DemoError("--size takes 16MiB to 16GiB, such as 2GiB, not '\(text)'") }
        arguments.removeSubrange(place...place + 1)
        return number * unit.1
    }

    private init(stand: TreeStand, videoBytes: Int) { (self.stand, self.videoBytes) = (stand, videoBytes) }

    private func play() throws {
        try makeFiles()
        say("A server, and two machines of Alice, 'desk' and 'laptop'. The password stays on them.")
        try stand.signUp("desk", "laptop")
        try upload()
        try skeleton()
        try openSome()
        try fetchVideo()
        let search = try searchServer()
        say("MATCH: everything arrived unchanged, and the server has \(search) of the clear names and bytes.")
        say("It took \(tenths(Double(Steady.milliseconds() - start) / 1_000)) s.")
    }

    /// Photos are made of a JPEG's first bytes and random ones: they do not compress, and can be searched for.
    private func makeFiles() throws {
        let names = Self.recipes.map { "'\($0)'" }.joined(separator: " ")
        try stand.shell(
            """
            mkdir -p recipes/photos out && for name in \(names); do \
            echo "# $name: knead the secret dough of $name for an hour" >"recipes/$name.md"; \
            { printf '\\xff\\xd8\\xff\\xe0\\0\\x10JFIF\\0'; head -c 300000 /dev/urandom; } >"recipes/photos/$name.jpg"; \
            done; head -c \(videoBytes) /dev/urandom >recipes/kneading.mp4
            """)
    }

    // MARK: - On the way up

    private func upload() throws {
        let words = ["put", "-r", stand.path("recipes"), "recipes"]
        show("desk", "put -r recipes recipes", videoBytes)
        var process = try stand.start("desk", words)
        try wait(process, share: 0.2)
        stand.cable.setPulled(true)
        try wait(process) { stand.cable.record.refused > 0 }
        say("  the cable is pulled \(passed); the program tries again and again")
        stand.cable.setPulled(false)
        try wait(process, share: 0.45)
        try stand.killServer()
        say("  the server is killed \(passed), and started again")
        try stand.startServer()
        try wait(process, share: 0.7)
        process.signal(SIGKILL)
        _ = try process.finish()
        stand.cable.countInterruption()
        say("  Alice's program is killed \(passed)")
        let half = try stand.tree("laptop", "find", "--type", "file").contains("kneading.mp4")
        guard !half else { throw DemoError("the laptop sees a video that is not whole") }
        show("desk", "put -r recipes recipes", nil)
        process = try stand.start("desk", words)
        let outcome = try process.finish(seconds: TreeStand.patience)
        guard outcome.code == 0 else { throw DemoError("the upload ended with \(outcome)") }
        let files = 2 * Self.recipes.count + 1
        guard outcome.output.hasPrefix("\(files) files: ") else { throw DemoError("the upload sent \(outcome.output)") }
        let repeated = stand.cable.record.repeated("PUT").values.max() ?? 0
        guard repeated <= 4 << 20 else {
            let what = stand.cable.record.repeatedText("PUT")
            throw DemoError("\(repeated) bytes were sent again after one interruption: \(what)")
        }
        indent(outcome.output)
        say("  After each interruption at most \(repeated >> 20) MiB, one part, were sent again.")
    }

    private var passed: String {
        "when \(stand.cable.record.fresh("PUT") >> 20) MiB of \(videoBytes >> 20) MiB have passed"
    }

    /// Waits until a share of the video has passed.
    private func wait(_ process: ChildProcess, share: Double) throws {
        let bytes = Int(Double(videoBytes) * share)
        try wait(process) { stand.cable.record.fresh("PUT") >= bytes }
    }

    private func wait(_ process: ChildProcess, _ isSo: () -> Bool) throws {
        let happened = Steady.waitFor(seconds: TreeStand.patience) { isSo() ? true : process.hasEnded ? false : nil }
        if happened == true { return }
        throw DemoError("the program ended too early: \(try process.finish())")
    }

    // MARK: - The other machine

    private func skeleton() throws {
        let before = try contentBytes()
        let begin = Steady.milliseconds()
        show("laptop", "tree recipes", nil)
        let outline = try stand.tree("laptop", "tree", "recipes")
        let time = Steady.milliseconds() - begin
        indent(outline)
        for name in Self.recipes {
            guard outline.contains("\(name).md"), outline.contains("\(name).jpg") else {
                throw DemoError("the laptop does not show \(name)")
            }
        }
        let bytes = try contentBytes() - before
        guard bytes == 0 else { throw DemoError("\(bytes) bytes of contents were downloaded for the skeleton") }
        say("  The whole skeleton, after \(time) ms; no content was downloaded.")
    }

    private func openSome() throws {
        let before = try contentBytes()
        show("laptop", "cat 'recipes/onion soup.md'", nil)
        let text = try stand.tree("laptop", "cat", "recipes/onion soup.md")
        indent(text)
        show("laptop", "get 'recipes/photos/onion soup.jpg' .", nil)
        try stand.tree("laptop", "get", "recipes/photos/onion soup.jpg", stand.path("out") + "/")
        try stand.shell("cmp 'recipes/photos/onion soup.jpg' 'out/onion soup.jpg'")
        let expected = try stand.shell("cat 'recipes/onion soup.md'")
        let bytes = try contentBytes() - before
        guard text == expected, bytes < 1 << 20 else { throw DemoError("'\(text)' took \(bytes) bytes") }
        say("  What she opened took \(bytes >> 10) KiB from the server.")
    }

    private func fetchVideo() throws {
        show("laptop", "get recipes/kneading.mp4 .", videoBytes)
        let words = ["get", "recipes/kneading.mp4", stand.path("out") + "/"]
        let process = try stand.start("laptop", words)
        try wait(process) { stand.cable.record.fresh("GET") >= videoBytes / 2 }
        process.signal(SIGKILL)
        _ = try process.finish()
        say("  killed in the middle; the same command again")
        try stand.tree("laptop", "get", "recipes/kneading.mp4", stand.path("out") + "/")
        try stand.shell("cmp recipes/kneading.mp4 out/kneading.mp4")
        say("  The video is whole and unchanged.")
    }

    private func contentBytes() throws -> Int { try stand.metric("thicket_blob_sent_bytes_total") }

    // MARK: - The server

    /// - Returns: how many of the searched texts and bytes the server's files have.
    private func searchServer() throws -> Int {
        try stand.terminateServer()
        let check = try stand.checkFaults()
        guard check.isEmpty else { throw DemoError(check.joined(separator: "; ")) }
        let stored = try TreeHoldings(stand.data)
        say("What the server stores: \(stored.nodes) nodes, \(stored.blobs) blobs of \(stored.blobBytes >> 20) MiB.")
        for line in stored.excerpt { say("  \(line)") }
        var search = ByteSearch()
        for name in Self.recipes + ["recipes", "photos", "kneading"] { search.add("name '\(name)'", Array(name.utf8)) }
        search.add("text", Array("knead the secret dough".utf8))
        for file in Self.recipes.map({ "photos/\($0).jpg" }) + ["kneading.mp4"] {
            try search.add("bytes of \(file)", ByteSearch.read(stand.path("recipes/\(file)"), from: 150_000, count: 16))
        }
        // The search finds all of them where they are.
        let clear = try search.found(in: stand.files(below: "recipes"))
        guard clear.count == search.count else { throw DemoError("the search finds \(clear.count) in the clear files") }
        let found = try search.found(in: stand.files(below: "data"))
        say(
            "A search for \(search.count) clear names, words and bytes: \(clear.count) in Alice's folder, "
                + "\(found.count) at the server.")
        guard found.isEmpty else { throw DemoError("the server has \(found.sorted())") }
        return found.count
    }

    // MARK: - Output

    private func show(_ machine: String, _ words: String, _ bytes: Int?) {
        let size = bytes.map { "    # \($0 >> 20) MiB" } ?? ""
        say("alice@\(machine):~$ thicket tree \(words)\(size)")
    }

    private func indent(_ text: String) { for line in text.split(separator: "\n") { say("  \(line)") } }
}
