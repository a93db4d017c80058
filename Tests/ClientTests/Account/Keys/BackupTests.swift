import Glibc
import Testing
import ThicketClient
import ThicketCrypto

@Suite("Backups of an account on paper: words, codes and pieces")
struct BackupTests {
    private let rules = PasswordRules.tests
    private let key: AccessKey

    init() throws { key = try AccessKey(SecureBytes(copying: Array(0..<32))) }

    private func text(_ secret: SecureBytes) -> String {
        secret.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }

    private func failure(_ body: () throws(AccountError) -> Void) -> AccountError? {
        do throws(AccountError) {
            try body()
            return nil
        } catch { return error }
    }

    // MARK: - Words

    @Test("words are read in any case, spacing and as four letters; an error gives count, position or checksum")
    func words() throws {
        let words = text(key.words)
        #expect(words.split(separator: " ").count == 24)
        let typed = [
            words, words.uppercased(), "  " + words.split(separator: " ").joined(separator: "\n\t") + "\n",
            words.split(separator: " ").map { String($0.prefix(4)) }.joined(separator: " "),
        ]
        for each in typed { #expect(try AccessKey(words: KeyBench.secret(each)) == key) }
        let list: [Substring] = words.split(separator: " ")
        let wrong: [([Substring], RecoveryWordsProblem)] = [
            (Array(list.dropLast()), .count), (list + ["abandon"], .count), (Array(list.prefix(12)), .count),
            ([], .count), (list.prefix(4) + ["thicket"] + list.dropFirst(5), .unknownWord(5)),
            ([list[1], list[0]] + list.dropFirst(2), .checksum),
        ]
        for (each, problem) in wrong {
            let error = failure { () throws(AccountError) in
                _ = try AccessKey(words: KeyBench.secret(each.joined(separator: " ")))
            }
            #expect(error == .unreadableWords(problem))
        }
        #expect(AccountError.unreadableWords(.unknownWord(5)).description.contains("word 5"))
    }

    // MARK: - Codes

    @Test("a code has four lines and opens, also in capitals and without line ends, with its passcode only")
    func code() throws {
        let cost = try rules.cost(kdf: 1, log2N: 14, r: 8, p: 1)
        let code = try RecoveryCode.make(
            key, passcode: KeyBench.secret("pin 1234"), cost: cost, salt: .init(repeating: 5, count: 16))
        let lines: [Substring] = text(code).split(separator: "\n")
        #expect(lines.count == 4 && lines.allSatisfy { $0.utf8.count == 8 * 5 + 2 })
        let typed = [
            text(code), text(code).uppercased(), text(code).filter { !$0.isWhitespace },
            text(code).replacing("o", with: "0").replacing("l", with: "1").replacing("b", with: "8"),
        ]
        for each in typed {
            #expect(
                try RecoveryCode.open(KeyBench.secret(each), passcode: KeyBench.secret("pin 1234"), rules: rules) == key
            )
        }
        let wrong = failure { () throws(AccountError) in
            _ = try RecoveryCode.open(code, passcode: KeyBench.secret("pin 1235"), rules: rules)
        }
        #expect(wrong == .wrongPasscode)
        let weak = failure { () throws(AccountError) in
            _ = try RecoveryCode.open(code, passcode: KeyBench.secret("pin 1234"))
        }
        #expect(weak == .downgrade("N 2^14, p 1"), "the product honours nothing below 2^17")
    }

    @Test("a wrong letter in a written code is an error of its line; fewer than one in 200 pass the check")
    func slips() throws {
        let bytes = SecureBytes.random(80)
        let code: [UInt8] = Array(text(try #require(WrittenCode.text(of: bytes))).utf8)
        var missed = 0
        var (tried, lineLetters) = (0, 0)
        for (place, letter) in code.enumerated() where letter != 0x20 && letter != 0x0A {
            lineLetters += 1
            for other in Array("abcdefghijklmnopqrstuvwxyz234567".utf8) where other != letter {
                var slip: [UInt8] = code
                slip[place] = other
                tried += 1
                do throws(WrittenCode.Failure) {
                    _ = try WrittenCode.bytes(of: SecureBytes(copying: slip))
                    missed += 1
                } catch { #expect(error == .line((lineLetters - 1) / 34 + 1)) }
            }
        }
        // Each line has ten check bits: one slip in 1,024 passes, and the seal catches it.
        #expect(tried == 4 * 34 * 31 && missed < tried / 200, "\(missed) of \(tried)")
        #expect(throws: WrittenCode.Failure.unreadable) {
            try WrittenCode.bytes(of: KeyBench.secret("what is this?"))
        }
    }

    // MARK: - Pieces

    @Test("any 3 of 5 pieces give the key, fewer do not, and a foreign piece is named")
    func pieces() throws {
        let pieces = try KeyPieces.split(key, needed: 3, count: 5)
        #expect(pieces.count == 5)
        func joined(_ some: [SecureBytes]) -> SecureBytes { .joined(some) }
        for left in 0..<5 {
            for right in 0..<5 where right != left {
                let three = pieces.indices.filter { $0 != left && $0 != right }.map { pieces[$0] }
                #expect(try KeyPieces.join(joined(three.reversed())) == key)
            }
        }
        let few = failure { () throws(AccountError) in
            _ = try KeyPieces.join(joined([pieces[0], pieces[1], pieces[0]]))
        }
        #expect(few == .pieces(.tooFew(has: 2, needs: 3)))
        let others = try KeyPieces.split(.random(), needed: 3, count: 5)
        let mixed = failure { () throws(AccountError) in
            _ = try KeyPieces.join(joined([pieces[0], others[1], pieces[2], pieces[3]]))
        }
        #expect(mixed == .pieces(.mixed([2])))
        for (needed, count) in [(1, 3), (4, 3), (2, 17), (0, 0)] {
            guard
                case .unusable? = failure({ () throws(AccountError) in
                    _ = try KeyPieces.split(key, needed: needed, count: count)
                })
            else {
                Issue.record("\(needed) of \(count)")
                continue
            }
        }
    }
}
