import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses

/// Files attached to encrypted notes, with the real programs.
@Suite("thicket onions: attachments", .blocking)
struct NoteAttachmentTests {
    private func homes() throws -> TreeHomes {
        let homes = try TreeHomes()
        for text in ["Passport\nnumber", "Router\nadmin"] {
            let made = try homes.bench.run(["onions", "new"], input: text)
            #expect(made.code == 0, "\(made)")
        }
        try homes.shell("head -c 40000 /dev/urandom > canary.jpg && echo canary-text > notes.txt")
        return homes
    }

    @Test("attached files are listed and saved on another machine, by the note's number or id; the server reads none")
    func lifecycle() throws {
        let homes = try homes()
        let attached = try homes.bench.good([
            "onions", "attach", "1", homes.path("canary.jpg"), homes.path("notes.txt"),
        ])
        #expect(
            attached.hasPrefix("canary.jpg is attached to the note ") && attached.contains("\nnotes.txt is attached"))
        #expect(try homes.bench.good(["onions", "attach", "1"], home: "other").contains("39.0 KiB"))
        #expect(try homes.bench.good(["onions", "attach", "2"], home: "other") == "")
        mkdir(homes.path("out"), 0o700)
        try homes.bench.good(["onions", "save", "1", "--to", homes.path("out")], home: "other")
        try homes.shell("cmp canary.jpg out/canary.jpg && cmp notes.txt out/notes.txt")
        try homes.bench.write("out/notes.txt", "mine")
        let kept = try homes.bench.run(["onions", "save", "1", "--to", homes.path("out")], home: "other")
        #expect(
            kept.code == 1 && kept.errors.contains("--force") && homes.bench.read("out/notes.txt") == "mine", "\(kept)")
        #expect(try !homes.serverHolds("canary"))

        try homes.bench.good(["onions", "detach", "1", "notes.txt"], home: "other")
        #expect(try homes.bench.run(["onions", "save", "1", "notes.txt"]).code == 3)
        #expect(try homes.bench.good(["onions", "attach", "1"]).hasSuffix("canary.jpg\n"))
    }

    @Test("attachments stay with a note that gets another title, and go with one that is removed")
    func removed() throws {
        let homes = try homes()
        try homes.bench.good(["onions", "attach", "1", homes.path("notes.txt")])
        try homes.bench.good(["onions", "attach", "2", homes.path("canary.jpg")])
        let edited = try homes.bench.run(["onions", "edit", "1"], input: "Other title\ntext")
        #expect(edited.code == 0, "\(edited)")
        #expect(try homes.bench.good(["onions", "attach", "1"]).hasSuffix("notes.txt\n"))
        try homes.bench.good(["onions", "rm", "2"])
        #expect(try homes.tree("find", "--type", "file", "prefs", home: "other").hasSuffix("/notes.txt\n"))
        #expect(try homes.run("find", "--name", "canary*", "prefs", home: "other").code == 3)
    }

    @Test("detach --orphans removes the attachments of notes that were removed on a machine without a tree")
    func orphans() throws {
        let homes = try homes()
        try homes.bench.good(["onions", "attach", "1", homes.path("notes.txt")])
        try homes.bench.good(["onions", "attach", "2", homes.path("notes.txt")])
        try homes.bench.good(["onions", "rm", "1"], home: "other")
        #expect(try homes.tree("find", "--type", "file", "prefs").split(separator: "\n").count == 2)
        #expect(try homes.bench.good(["onions", "detach", "--orphans"]) == "attachments of 1 note are removed\n")
        #expect(try homes.bench.good(["onions", "detach", "--orphans"]) == "attachments of 0 notes are removed\n")
        #expect(
            try homes.bench.good(["onions", "attach", "1"]).hasSuffix("notes.txt\n"), "that of the other note stays")
    }

    @Test("a missing file, a folder, an unknown note and an account without keys are refused before anything is sent")
    func refused() throws {
        let homes = try homes()
        for (words, code) in [
            (["attach", "1", homes.path("nowhere")], 3), (["attach", "1", homes.path("out")], 2),
            (["attach", "9", homes.path("notes.txt")], 3), (["save", "1"], 3), (["detach", "1"], 2),
            (["save", "1", "--to", homes.path("nowhere")], 3),
        ] as [([String], Int32)] {
            mkdir(homes.path("out"), 0o700)
            let outcome = try homes.bench.run(["onions"] + words)
            #expect(outcome.code == code, "\(words) \(outcome)")
        }
        let old = try homes.bench.run(
            ["onions", "attach", "--old-account", "1"], variables: ["THICKET_USER": "old", "THICKET_PASSWORD": "x"])
        #expect(old.code == 2 && old.errors.contains("account with keys"), "\(old)")
        #expect(try homes.run("find", "prefs").code == 3, "nothing was made in the tree")
    }
}
