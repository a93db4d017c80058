import Testing
import ThicketProtocol
import ThicketTestSupport

@Suite struct JSONNumberTests {
    @Test("a lexeme is one JSON number and nothing else")
    func lexemes() {
        for good in ["0", "-0", "1.50", "1E+400"] { #expect(JSONNumber(lexeme: good)?.lexeme == good) }
        for bad: String in ["", " 1", "1 ", "01", "+1", "1.", ".1", "1e", "NaN", "0x1", "1,2", "٣", "--1"] {
            #expect(JSONNumber(lexeme: bad) == nil, "\(bad)")
        }
    }

    @Test("whole numbers are found in any notation, up to the bounds of 64 bits")
    func integers() {
        let table: [(String, Int64?)] = [
            ("0", 0), ("-0", 0), ("0e999999999999999999999", 0), ("7", 7), ("-7", -7), ("1.0", 1), ("1e2", 100),
            ("120e-1", 12), ("1.5", nil), ("1e-1", nil), ("0.0000", 0), ("9223372036854775807", .max),
            ("9223372036854775808", nil), ("-9223372036854775808", .min), ("-9223372036854775809", nil),
            ("9.223372036854775807e18", .max), ("92233720368547758070e-1", .max), ("1e18", 1_000_000_000_000_000_000),
            ("1e19", nil), ("1e99999999999999999999", nil), ("1e-99999999999999999999", nil),
            ("18446744073709551616", nil), ("999999999999999999", 999_999_999_999_999_999),
            ("-1000000000000000000", -1_000_000_000_000_000_000),
        ]
        for (lexeme, value) in table {
            #expect(JSONNumber(lexeme: lexeme)?.int64 == value, "\(lexeme)")
            #expect(try! JSONDocument(parsing: Array(lexeme.utf8)).root.int64 == value, "\(lexeme)")
        }
    }

    @Test("a number's double is the nearest one")
    func doubles() {
        let table = [
            ("0.1", 0.1), ("1e400", .infinity), ("-1e400", -.infinity), ("1e-400", 0),
            ("5e-324", .leastNonzeroMagnitude),
            ("9007199254740993", 9_007_199_254_740_992), ("1.7976931348623157e308", .greatestFiniteMagnitude),
            ("1e99999999999999999999999", .infinity), ("123456789012345678", 123_456_789_012_345_680),
        ]
        for (lexeme, value) in table { #expect(JSONNumber(lexeme: lexeme)?.double == value, "\(lexeme)") }
    }

    @Test("JavaScript's form is that of Number::toString")
    func javaScript() {
        let table = [
            ("1.0", "1"), ("-0", "0"), ("-0.0", "0"), ("1e0", "1"), ("100", "100"), ("1e21", "1e+21"),
            ("123456789012345678901", "123456789012345680000"), ("1e20", "100000000000000000000"), ("0.1", "0.1"),
            ("0.000001", "0.000001"), ("0.0000001", "1e-7"), ("1.5e-7", "1.5e-7"), ("123.456", "123.456"),
            ("-1.25e3", "-1250"), ("5e-324", "5e-324"), ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("1e400", "null"), ("9007199254740993", "9007199254740992"), ("0.30000000000000004", "0.30000000000000004"),
            ("1.1000000238", "1.1000000238"), ("12345678901234567890", "12345678901234567000"),
            ("4.35", "4.35"), ("2.5e25", "2.5e+25"), ("100000.5", "100000.5"), ("1e16", "10000000000000000"),
        ]
        for (lexeme, form) in table { #expect(JSONNumber(lexeme: lexeme)?.javaScriptForm == form, "\(lexeme)") }
        #expect(JSONNumber(0.1)?.lexeme == "0.1")
        #expect(JSONNumber(-3.0)?.lexeme == "-3")
        #expect(JSONNumber(1e100)?.lexeme == "1e+100")
        #expect(JSONNumber(Double.infinity) == nil)
        #expect(JSONNumber(Double.nan) == nil)
    }

    @Test("sums are exact, and refused where they would have too many digits")
    func sums() throws {
        let table = [
            ("1", "2", "3"), ("0.1", "0.2", "0.3"), ("1", "-1", "0"), ("1.5", "-1.5", "0"), ("1", "-3", "-2"),
            ("9223372036854775807", "1", "9223372036854775808"), ("-9223372036854775808", "-1", "-9223372036854775809"),
            ("9223372036854775807", "-9223372036854775807", "0"), ("1.0", "2", "3"), ("1e2", "1", "101"),
            ("99999999999999999999999999999999", "1", "100000000000000000000000000000000"),
            ("1e30", "1", "1000000000000000000000000000001"), ("1e-30", "1", "1.000000000000000000000000000001"),
            ("123.456", "0.544", "124"), ("-0.001", "1", "0.999"), ("1", "-0.001", "0.999"),
            ("5e-7", "5e-7", "0.000001"),
            ("0", "1.50", "1.50"), ("1.50", "-0", "1.50"), ("1e400", "0.0", "1e400"), ("1e5000", "1", nil),
            ("1e99999999999999999999", "1", nil), ("1e99999999999999999999", "0", "1e99999999999999999999"),
            ("1e5000", "2e5000", "3e+5000"), ("-1e-5000", "-1e-5000", "-2e-5000"), ("1000", "-999.5", "0.5"),
        ]
        for (left, right, sum) in table {
            let (a, b) = (
                try #require(JSONNumber(lexeme: left)), try #require(JSONNumber(lexeme: right))
            )
            #expect(a.adding(b)?.lexeme == sum, "\(left) + \(right)")
            #expect(b.adding(a) == a.adding(b), "\(left) + \(right)")
        }
    }

    @Test("sums agree with whole-number arithmetic at every shift of the decimal point")
    func sumsAgree() throws {
        var random = SeededRandom(seed: 0x53_55_4D)
        for _ in 0..<500 {
            let (a, b): (Int64, Int64) = (
                .random(in: -99_999...99_999, using: &random), .random(in: 1...999, using: &random)
            )
            let shift = Int.random(in: -20...20, using: &random)
            let left = try #require(JSONNumber(lexeme: "\(a)e\(shift)"))
            let right = try #require(JSONNumber(lexeme: "\(b)0e\(shift - 1)"))
            let sum = try #require(JSONNumber(lexeme: "\(a + b).000e\(shift)"))
            #expect(left.adding(right) == sum, "\(left) + \(right)")
            #expect(JSONNumber(lexeme: left.adding(right)?.lexeme ?? "") == sum)
        }
    }

    @Test("a number of a million digits is compared without being expanded")
    func long() throws {
        let zeros = String(repeating: "0", count: 1_000_000)
        let one = JSONNumber(1)
        #expect(try #require(JSONNumber(lexeme: "1." + zeros)) == one)
        #expect(try #require(JSONNumber(lexeme: "1" + zeros + "e-1000000")) == one)
        #expect(try #require(JSONNumber(lexeme: "0." + zeros + "1e1000001")) == one)
        #expect(try #require(JSONNumber(lexeme: "1." + zeros + "1")) != one)
    }
}
