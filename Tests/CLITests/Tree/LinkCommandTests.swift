import Testing
import ThicketProcesses
import ThicketProtocol

/// Links to branches, with real programs: the owner has a home, the holder of a link has none.
@Suite("Links, from the command line", .timeLimit(.minutes(10)))
struct LinkCommandTests {
    private let homes: TreeHomes

    init() throws { homes = try TreeHomes() }

    /// Runs `thicket link …` in a home without a profile.
    private func link(
        _ words: String..., variables: [String: String] = [:], input: String = ""
    ) throws -> ChildProcess.Outcome {
        try homes.bench.run(["link"] + words, home: "stranger", input: input, variables: variables)
    }

    private func text(_ output: String) -> String { output.filter { !$0.isWhitespace } }

    @Test("K18: files put in by a link are shown as by a guest, not verified; the bounds and the end are kept")
    func deposit() throws {
        try homes.tree("mkdir", "box")
        let made = text(try homes.tree("link", "box", "--deposit", "--files", "2", "--size", "1M"))
        #expect(made.hasPrefix("thicket-link-1."))
        try homes.bench.write("form.txt", "my form\n")
        try homes.bench.write("more.txt", "and more\n")
        let put = try link("put", made, homes.path("form.txt"))
        #expect(put.code == 0 && put.output == "form.txt is sent\n", "\(put)")
        let listed = try homes.tree("ls", "-l", "box")
        for part in ["form (", "guest (link ", "not verified"] { #expect(listed.contains(part), "\(listed)") }
        let object = try #require(try JSONValue(parsing: homes.tree("ls", "--json", "box")).objectValue)
        #expect(object["verified"] == .bool(false))
        #expect(object["author"]?.stringValue?.hasPrefix("guest-") == true)
        let name = try #require(object["name"]?.stringValue)
        #expect(try homes.tree("cat", "box/\(name)") == "my form\n")
        let shared = try homes.tree("shared")
        #expect(shared.contains("W  guest (link ") && shared.contains("(not verified)"), "\(shared)")
        let again = try link("put", "-", homes.path("more.txt"), homes.path("form.txt"), input: made + "\n")
        #expect(again.code == 4 && again.output == "more.txt is sent\n", "\(again)")
        #expect(again.errors.contains("no files or bytes left"))
        for words in [["list", made], ["get", made]] {
            let read = try homes.bench.run(["link"] + words, home: "stranger")
            #expect(read.code == 2 && read.errors.contains("link put"), "\(read)")
        }
        let links = try homes.tree("links")
        #expect(links.contains("deposit  home/box  until") && links.contains("0 files and "), "\(links)")
        let guest = try #require(links.split(separator: " ").first.map(String.init))
        #expect(try homes.tree("unlink", "box", guest) == "link \(guest) to home/box has ended\n")
        #expect(try homes.tree("links").isEmpty)
        let ended = try link("put", made, homes.path("more.txt"))
        #expect(ended.code == 6 && ended.errors.contains("ended"), "\(ended)")
        #expect(try homes.run("unlink", "box", guest).code == 3)
    }

    @Test("S14: a link with a passphrase lists and copies a branch, and leaves nothing else on the machine")
    func reading() throws {
        try homes.shell("mkdir -p trip/days && echo one > trip/days/first && head -c 1M /dev/urandom > trip/film")
        try homes.tree("put", "-r", homes.path("trip"), "trip")
        let given = ["THICKET_LINK_PASSPHRASE": "sesame"]
        let made = text(
            try homes.bench.good(["tree", "link", "trip", "--read", "--passphrase"], variables: given))
        let listed = try link("list", made, variables: given)
        #expect(listed.code == 0, "\(listed)")
        #expect(Set(listed.output.split(separator: "\n").map(String.init)) == ["days/", "days/first", "film"])
        let got = try link("get", made, homes.path("copy"), variables: given)
        #expect(got.code == 0, "\(got)")
        try homes.shell("diff -r trip copy")
        let wrong = try link("list", made, variables: ["THICKET_LINK_PASSPHRASE": "open"])
        #expect(wrong.code == 6 && wrong.errors.contains("passphrase"), "\(wrong)")
        let put = try link("put", made, homes.path("trip/film"), variables: given)
        #expect(put.code == 2 && put.errors.contains("link get"), "\(put)")
        #expect(try homes.bench.run(["link", "list", String(made.dropLast()) + "x"], home: "stranger").code == 2)
        let kept = try homes.shell("find stranger -type f 2>/dev/null | wc -l || true")
        #expect(kept.filter(\.isNumber) == "0")
    }

    @Test("what a link is for is said, and its bounds are numbers that a link can have")
    func words() throws {
        try homes.tree("mkdir", "box")
        for words in [
            [], ["--read", "--deposit"], ["--deposit", "--days", "91"], ["--deposit", "--files", "0"],
            ["--deposit", "--size", "much"], ["--read", "--files", "2"],
        ] {
            let refused = try homes.bench.run(["tree", "link", "box"] + words)
            #expect(refused.code == 2 && refused.output.isEmpty, "\(words): \(refused)")
        }
        let missing = try homes.run("link", "nothing", "--read")
        #expect(missing.code == 3, "\(missing)")
        #expect(try homes.tree("links").isEmpty)
    }
}
